"""Clients and daemons of different versions: they agree or say in one line who is older, and no run is ended by it."""

import asyncio
import json
import signal
import sys
from contextlib import AsyncExitStack

import pytest

from tests.e2e.conftest import House
from zotd.client.follow import Disconnected, Follower
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.script import Gate, ScriptedReply, TextPart, text
from zotd.wire.api import Attached
from zotd.wire.version import agreed, is_newer, refusal

NUMBERS = range(1, 6)
"""N-2 to N+2; each version speaks its own protocol and the one before."""


def version(number):
    return f"0.{number}.0"


def spoken(number):
    return number - 1, number


def as_version(number):
    """What stands before a command that is to be of that version."""
    return [sys.executable, "-m", "zotd.testing.skewed", version(number), *map(str, spoken(number))]


async def zotctl(number, env, *args):
    """Its exit code, standard output and standard error, in that version."""
    process = await asyncio.create_subprocess_exec(
        *as_version(number), *(sys.executable, "-m", "zotctl", *args),
        env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


@pytest.mark.parametrize("client", NUMBERS)
@pytest.mark.parametrize("daemon", NUMBERS)
def test_two_versions_agree_on_the_newest_protocol_of_both_or_on_none(client, daemon):
    both = set(range(spoken(client)[0], client + 1)) & set(range(spoken(daemon)[0], daemon + 1))
    assert agreed(spoken(client), spoken(daemon)) == max(both, default=None)


def test_a_refusal_names_both_versions_and_which_is_older():
    assert refusal("zot 0.1.0", (1, 1), (3, 4), "0.4.0") == (
        "zot 0.1.0 speaks protocol 1, zotd 0.4.0 speaks 3 to 4: zot 0.1.0 is older, update it"
    )
    assert refusal("zot 0.4.0", (3, 4), (1, 1), "0.1.0").endswith(
        "the daemon is older, update it with `zotctl restart --when-idle`"
    )


@pytest.mark.parametrize(("one", "other"), [("0.10.0", "0.9.9"), ("1.0", "0.9.1"), ("0.2.1-dev", "0.2.0")])
def test_versions_are_compared_as_numbers(one, other):
    assert is_newer(one, other)
    assert not is_newer(other, one)
    assert not is_newer(one, "tip")


@pytest.mark.parametrize("number", NUMBERS)
async def test_clients_of_all_versions_compare_their_version_with_the_daemons(tmp_path, number):
    with DaemonProcess(tmp_path, wrapper=as_version(number)) as daemon:
        said = await of_all(lambda client: _status(client, daemon.place.env))
    for client, status in zip(NUMBERS, said, strict=True):
        assert (status["state"], status["pid"]) == ("running" if client == number else "mismatched", daemon.pid)
        refused = f"this program ({version(client)})", spoken(client), spoken(number), version(number)
        shares = agreed(spoken(client), spoken(number)) is not None
        assert status.get("error") == (None if shares else refusal(*refused))


async def test_a_run_continues_while_clients_of_all_versions_connect(tmp_path, model):
    number = NUMBERS[2]
    async with AsyncExitStack() as stack:
        daemon = stack.enter_context(DaemonProcess(tmp_path, wrapper=as_version(number)))
        house, gate = House(stack, daemon.place, daemon), asyncio.Event()
        server = await model(ScriptedReply([TextPart(["It "]), Gate(gate), TextPart(["goes on."])]))
        talk = await house.create("openai", server)
        await talk.ask("prompt", message="go")
        await talk.until("text_delta")
        said = await of_all(lambda client: zotctl(client, daemon.place.env, "sessions", "--json"))
        for client, (code, _, err) in zip(NUMBERS, said, strict=True):
            refused = f"zotctl {version(client)}", spoken(client), spoken(number), version(number)
            shares = agreed(spoken(client), spoken(number)) is not None
            assert (code, err) == ((0, "") if shares else (1, f"zotctl: {refusal(*refused)}\n"))
        status = await talk.ask("daemon.status")
        assert (status["pid"], status["running"]) == (daemon.pid, 1)
        gate.set()
        assert (await talk.until("done"))[-1].get("error") is None


async def of_all(ask):
    """What `ask` gives for a client of each version, all at once."""
    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(ask(client)) for client in NUMBERS]
    return [one.result() for one in asked]


async def _status(client, env):
    return json.loads((await zotctl(client, env, "status", "--json"))[1])


async def test_hello_is_understood_whatever_else_a_newer_client_says(house):
    client = await house.connect()
    newer = {"name": "x", "version": "9", "badge": {"colour": "red"}}
    answer = await client.answer("hello", client=newer, protocol=[8, 9], moods=["new"], features=["x"])
    assert (answer["success"], answer["code"]) == (False, "unsupported")
    assert "x 9 speaks protocol 8 to 9" in answer["error"]
    assert "the daemon is older" in answer["error"]
    backwards = await client.answer("hello", protocol=[2, 1])
    assert backwards["code"] == "bad_request"
    said = await client.ask("hello", client=newer, protocol=[1, 9])  # the connection lives
    assert (said["protocol_version"], said["protocols"]) == (1, [1, 1])
    assert isinstance(said["features"], list)


async def test_a_daemon_with_which_nothing_is_shared_is_asked_and_ended_all_the_same(tmp_path, ended):
    """`hello` without a protocol, `ping`, `daemon.status` and `daemon.shutdown` are the same in all of them."""
    with DaemonProcess(tmp_path, wrapper=as_version(1)) as daemon:
        code, out, err = await zotctl(4, daemon.place.env, "status")
        assert code == 1
        assert "zotctl restart --when-idle" in out
        assert "the daemon is older" in err
        assert (await zotctl(4, daemon.place.env, "ping"))[:2] == (0, "pong\n")
        code, out, err = await zotctl(4, daemon.place.env, "restart", "--json")
        assert (code, err) == (0, "")
        said = json.loads(out)
        assert said["before"] == {"pid": daemon.pid, "version": "0.1.0"}
        assert daemon.wait() == 0
        assert (await zotctl(4, daemon.place.env, "stop"))[0] == 0
        await ended(said["pid"])


async def test_a_daemon_of_another_version_is_one_line_in_the_status(tmp_path):
    with DaemonProcess(tmp_path, wrapper=as_version(2)) as daemon:
        newer, older = [json.loads((await zotctl(n, daemon.place.env, "status", "--json"))[1]) for n in (3, 1)]
    assert newer["warnings"] == ["zotd has version 0.2.0, this program 0.3.0: zotctl restart --when-idle"]
    assert older["warnings"] == ["zotd has version 0.2.0, this program 0.1.0: update this program"]
    assert (newer["next"], older["next"]) == ("zotctl restart --when-idle", "which -a zotctl")


async def test_those_who_follow_a_session_come_back_after_a_restart(tmp_path, model, ended):
    async with AsyncExitStack() as stack:
        daemon = stack.enter_context(DaemonProcess(tmp_path))
        stack.push_async_callback(zotctl, 1, daemon.place.env, "stop")  # the next one is nobody's child
        house, gate = House(stack, daemon.place, daemon), asyncio.Event()
        server = await model(ScriptedReply([TextPart(["It "]), Gate(gate), TextPart(["goes on."])]), text("again"))
        talk = await house.create("openai", server)
        await talk.ask("prompt", message="go")
        follower, seen = Follower(talk.id, env=daemon.place.env), []
        env = {**daemon.place.env, "PYTHONUNBUFFERED": "1"}
        async for item in follower.items():
            seen.append(type(item))
            if isinstance(item, Attached) and len(seen) == 1:
                restart = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-m", "zotctl", "restart", "--when-idle", "--json"),
                    env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
                )  # fmt: skip
                assert restart.stderr is not None
                assert (await restart.stderr.readline()).startswith(b"waiting for 1 active session ")
                gate.set()  # nothing was cut: the run comes to its end first
            elif isinstance(item, Attached):
                break
        out, _ = await restart.communicate()
        assert Disconnected in seen
        pid = json.loads(out)["pid"]
        assert pid != daemon.pid
        assert (await (await house.follow(talk.id)).texts())[-1] == ("assistant", ["It goes on."])
        await asyncio.to_thread(daemon.wait)
    await ended(pid)


async def test_ctrl_c_leaves_a_restart_asked_for(process, model):
    gate = asyncio.Event()
    talk = await process.create(
        "openai", await model(ScriptedReply([TextPart(["It "]), Gate(gate), TextPart(["goes on."])]))
    )
    await talk.ask("prompt", message="go")
    await talk.until("text_delta")
    restart = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "zotctl", "restart", "--when-idle"),
        env=process.place.env, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert restart.stderr is not None
    await restart.stderr.readline()
    restart.send_signal(signal.SIGINT)
    _, err = await restart.communicate()
    assert restart.returncode == 130
    assert b"still stops when no run is active" in err
    gate.set()
    await talk.until("done")
    assert process.daemon.wait() == 0
