"""Errors that edits cause, as a real daemon adds them to the results of `edit` and `write`."""

import json
import sys

import pytest

from tests.e2e.conftest import only
from tests.needs import needs
from zotd.testing.script import CallPart, calls, text

SERVER = [sys.executable, "-m", "zotd.testing.language_server"]


def write(content, path="a.txt"):
    return calls(CallPart("write", {"path": path, "content": content}))


def edit(old, new, path="a.txt"):
    return calls(CallPart("edit", {"path": path, "edits": [{"oldText": old, "newText": new}]}))


@pytest.fixture
def checked(house, model):
    """`await checked(*replies)`: a session in a directory whose text files a scripted language server checks."""

    async def checked(*replies, traits=(), trusted=True, enabled=True, mode="yolo"):
        needs("bwrap")
        lines = ["[diagnostics]", f"enabled = {json.dumps(enabled)}", "wait_s = 60", "[diagnostics.servers.fake]"]
        lines += [f"command = {json.dumps([*SERVER, *traits])}", 'languages = { ".txt" = "plaintext" }', ""]
        (house.place.home / "config.toml").write_text("\n".join(lines))
        admin = await house.connect(role="admin")
        await admin.ask("daemon.reload")
        if trusted:
            (found,) = (await admin.ask("trust.list", path=str(house.cwd)))["workspaces"]
            await admin.ask("trust.grant", path=str(house.cwd), digest=found["digest"])
        return await house.create("openai", await model(*replies, text("done")), mode=mode)

    return checked


async def results(talk):
    events = await talk.run()
    return [one["content"][0]["text"] for one in only(events, "tool_result")], events


@pytest.mark.parametrize("mode", ["yolo", "workspace"])
async def test_new_errors_come_with_the_result_of_the_edit(checked, house, mode):
    talk = await checked(
        write("one # error: old\n", "b.txt"),
        edit("one", "1 # error: new\none", "b.txt"),
        write("two\n"),
        mode=mode,
    )
    (house.cwd / "b.txt").write_text("zero # error: old\n")
    (first, second, third), _ = await results(talk)
    assert first == "Replaced b.txt (17 bytes)"  # the error was there
    assert second.startswith("Edited b.txt: 1 replacement\n\n--- b.txt")
    assert second.endswith("\n\n1 new error after this change:\nb.txt:1:3: new (fake)")
    assert third == "Created a.txt (4 bytes)"


async def test_nothing_is_checked_where_the_workspace_is_not_trusted(checked, house):
    (first,), _ = await results(await checked(write("x # error: new\n"), trusted=False))
    assert first == "Created a.txt (15 bytes)"
    assert (await (await house.connect()).ask("diagnostics.list"))["servers"] == []


async def test_nothing_is_checked_when_it_is_switched_off(checked):
    (first,), _ = await results(await checked(write("x # error: new\n"), enabled=False))
    assert first == "Created a.txt (15 bytes)"


async def test_people_are_told_once_that_a_server_is_off_and_the_list_says_why(checked, house):
    talk = await checked(*(write(f"{number}\n") for number in range(4)), traits=["crashes"])
    told, events = await results(talk)
    assert told[-1] == "Replaced a.txt (2 bytes)"
    (notice,) = [one["text"] for one in only(events, "notice") if "language server" in one["text"]]
    assert "has exited with code 1: fake: a missing library; it has failed 3 times" in notice
    found = await (await house.connect()).ask("diagnostics.list", cwd=str(house.cwd))
    (one,) = found["servers"]
    assert (one["name"], one["state"], one["pid"], one["sessions"]) == ("fake", "off", None, [talk.id])
    assert one["reason"] in notice


async def test_a_directory_that_is_no_path_is_refused(house):
    assert await (await house.connect()).refused("diagnostics.list", cwd="here") == "bad_request"


async def test_servers_end_with_the_session_that_is_deleted(checked, house):
    talk = await checked(write("x\n"))
    await results(talk)
    client = await house.connect(role="admin")
    (one,) = (await client.ask("diagnostics.list"))["servers"]
    assert one["state"] == "ready"
    assert one["memory_bytes"] > 1_000_000
    await client.ask("session.delete", session=talk.id)
    while (await client.ask("diagnostics.list"))["servers"]:
        await client.ask("ping")
