"""Which hosts the commands of a session reach in the mode `workspace`, in a real daemon, bubblewrap and curl."""

from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.conftest import only
from tests.e2e.test_workspace import bash, opened, results_of
from tests.e2e.test_workspace import user as user  # noqa: PLC0414  (a fixture)
from tests.jail.conftest import files
from tests.needs import needs
from zotd.jail import Mechanism
from zotd.proxy.traffic_log import log_path, read_log
from zotd.testing.script import CallPart, calls, text

NETWORK = "[sandbox]\nhosts = {}\n"


@pytest.fixture
async def yard(monkeypatch, model, user):
    needs("curl")
    runtime = user / "runtime"
    runtime.mkdir(mode=0o700)
    async with opened(Mechanism.BUBBLEWRAP, monkeypatch, model, user, XDG_RUNTIME_DIR=str(runtime)) as yard:
        yield yard


@contextmanager
def site(user):
    """Where a server outside of the jail is: an address that is allowed nowhere by default."""
    folder = user / "site"
    folder.mkdir()
    (folder / "page").write_text("a page")
    with files(folder) as port:
        yield f"127.0.0.3:{port}"


def curl(host):
    return bash(f"curl -sS http://{host}/page")


def outlets_of(yard):
    return Path(yard.house.place.env["XDG_RUNTIME_DIR"], "zot", "outlets")


def log_of(yard):
    return [(one.who, f"{one.host}:{one.port}", one.outcome) for one in read_log(log_path(str(yard.house.place.home)))]


async def test_a_host_of_the_configuration_is_reached_without_a_question_and_logged_by_session(yard, user):
    with site(user) as host:
        await yard.configure(NETWORK.format([host]))
        talk, _ = await yard.open(calls(CallPart(*curl(host))), text("done"))
        events = await talk.run()
    assert only(events, "approval_requested") == only(events, "notice") == []
    assert "a page" in results_of(events)[0]
    assert log_of(yard) == [(talk.id, host, "allowed")]


async def test_another_configuration_holds_from_the_next_command_on(yard, user):
    with site(user) as host:
        steps = (calls(CallPart(*curl(host))), text("done"))
        talk, _ = await yard.open(*steps, *steps)
        await yard.configure('[sandbox]\nnetwork = "off"\n')
        before = results_of(await talk.run())
        await yard.configure('[sandbox]\nnetwork = "open"\n')
        after = results_of(await talk.run())
    assert ("a page" in before[0], "a page" in after[0]) == (False, True)
    assert log_of(yard) == []


async def test_a_malformed_host_is_left_out_and_users_are_told(yard, user):
    with site(user) as host:
        await yard.configure(NETWORK.format(["http://x.example", host]))
        [result], events = await yard.run(curl(host))
    assert "a page" in result
    [notice] = only(events, "notice")
    assert "malformed and left out" in notice["text"]
    assert "write only the host of a URL" in notice["text"]


async def test_without_a_safe_place_for_the_proxy_commands_have_no_network_and_users_are_told_once(yard, user):
    with site(user) as host:
        await yard.configure(NETWORK.format([host]))
        steps = (calls(CallPart(*curl(host))), text("done"))
        talk, _ = await yard.open(*steps, *steps)
        outlets_of(yard).mkdir(parents=True)
        outlets_of(yard).chmod(0o755)
        first, second = await talk.run(), await talk.run()
    assert "a page" not in results_of(first)[0]
    [notice] = only(first, "notice")
    assert "the proxy cannot be started, so commands of this session have no network" in notice["text"]
    assert only(second, "notice") == []


async def test_a_command_sees_no_outlet_but_its_own_whatever_the_environment_of_its_client_says(yard, user):
    with site(user) as host:
        await yard.configure(NETWORK.format([host]))
        outlets = outlets_of(yard)
        [first, result], _ = await yard.run(curl(host), bash(f"echo seen: $(ls {outlets} | wc -l)"))
        (outlets / "another").touch()
        [again], _ = await yard.run(bash(f"echo seen: $(ls {outlets} | wc -l)"))
    assert "a page" in first
    assert ("seen: 1" in result, "seen: 1" in again) == (True, True)
