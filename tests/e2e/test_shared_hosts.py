"""A daemon whose shared repository is reached over https: a missing login stops nothing but the session, and is told."""

import asyncio
from pathlib import Path

import pytest

from tests.checkpoints.conftest import git
from tests.checkpoints.git_host import PASSWORD, serving
from tests.needs import needs
from zotd.testing.script import CallPart, calls, text

ANSWER_S = 60


@pytest.fixture
def host(tmp_path):
    needs("git")
    with serving(tmp_path / "host") as host:
        yield host


def wait_for_files(repository, session):
    """Wait until the repository has files of the session."""
    while session not in git(repository, "for-each-ref"):
        pass  # git does not report it


async def test_a_login_that_is_missing_is_told_and_the_files_follow_when_it_is_there(host, member, talk_in):
    house = member("one", ZOT_FLEET_WORKSPACES=host.url)
    user = Path(house.place.env["HOME"])
    host.introduce(user)
    write = calls(CallPart("bash", {"command": "echo one > a"}))
    talk = await talk_in(house, write, text("done"), write, text("again"), mode="yolo")
    async with asyncio.timeout(ANSWER_S):
        refusal = await talk.client.answer("prompt", session=talk.id, message="go")
    assert refusal["error"] == (
        f"the files of the session are not here: {host.url} wants a login, and no credential helper of git has one; see "
        "`git help credentials`"
    )
    host.introduce(user, PASSWORD)
    await talk.run("go")
    async with asyncio.timeout(ANSWER_S):
        await asyncio.to_thread(wait_for_files, host.repository, talk.id)
    assert git(host.repository, "show", f"refs/zot/files/{talk.id}:files/a") == "one\n"


async def test_a_login_that_is_taken_back_costs_no_step_and_is_told(host, member, talk_in):
    house = member("one", ZOT_FLEET_WORKSPACES=host.url)
    user = Path(house.place.env["HOME"])
    host.introduce(user, PASSWORD)
    write = calls(CallPart("bash", {"command": "date +%N > a"}))
    talk = await talk_in(house, write, text("done"), write, text("on"), mode="yolo")
    await talk.run("go")
    host.introduce(user, "wr0ng-secret")
    await talk.ask("prompt", message="go on")
    said = list[dict[str, object]]()
    async with asyncio.timeout(ANSWER_S):
        while not (any(one["type"] == "done" for one in said) and "are not stored in" in str(said)):
            said.append(await talk.client.event())
    assert f"Authentication failed for '{host.url}/'" in str(said)
    assert "wr0ng" not in str(said) + house.daemon.log
    assert (await talk.texts())[-1] == ("assistant", ["on"])
