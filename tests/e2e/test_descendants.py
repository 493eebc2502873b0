"""The model runs `zotctl` and `zot` with bash: it sees its own session, and cannot decide about it."""

import shlex
from collections import deque
from contextlib import AsyncExitStack

import pytest

from tests.e2e.conftest import House
from tests.e2e.shop import Shop
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.script import Answer, CallPart, calls, text

APPROVE = """
import os
from zotd import paths
from zotd.client.blocking import connect
with connect(paths.socket_path(os.environ)) as daemon:
    daemon.call("approve", session="{session}", approval="a_1", args_digest="x", decision="allow")
"""

STEAL = """
import os
from zotd import paths
from zotd.client.blocking import connect
with connect(paths.socket_path(os.environ)) as daemon:
    daemon.call("attach", session="{session}", env={{"PATH": os.environ["PATH"], "STOLEN": "yes"}})
"""


@pytest.fixture
async def nesting(tmp_path):
    """A daemon in a process of its own that lets programs open sessions."""
    async with AsyncExitStack() as stack:
        daemon = stack.enter_context(DaemonProcess(tmp_path, {"ZOT_NESTED": "submit", "OPENAI_API_KEY": "sk-own"}))
        yield House(stack, daemon.place, daemon)


def bash(command):
    return calls(CallPart("bash", {"command": command}))


def python(program):
    return f"python3 -c {shlex.quote(program)}"


async def told(talk, look):
    """What the commands of a run have printed."""
    events = await talk.run()
    return [block["text"] for one in look.only(events, "tool_result") for block in one["content"]]


async def test_what_decides_or_administers_is_refused_and_the_rule_is_named(process, model, look):
    commands = ["zotctl ext install .", "zotctl trust grant .", "zotctl channel pair ABC-123", "zotctl stop"]
    server = await model(*(bash(command) for command in commands), text("No."))
    for said in await told(await Shop(process).open(server), look):
        assert "the role admin is not allowed for programs started by zotd (rule: descendants never decide)" in said
        assert "[exit 1]" in said
    assert "descends from this daemon" in process.daemon.log


@pytest.mark.parametrize(
    "way", ["{}", "setsid --wait {}", "env -i PATH=$PATH ZOT_HOME=$ZOT_HOME PYTHONPATH=$PYTHONPATH {}", "({} & wait)"]
)
async def test_it_cannot_approve_its_own_calls(process, model, look, way):
    shop = Shop(process)
    talk = await shop.open(None)
    server = await model(bash(way.format(python(APPROVE.format(session=talk.id)))), text("No."))
    await talk.ask("session.configure", base_url=server.openai_url)
    (said,) = await told(talk, look)
    assert "approve is not allowed for programs started by zotd (rule: descendants never decide)" in said


async def test_it_sees_its_own_session_only(process, model, look):
    shop = Shop(process)
    other = await shop.open(None)
    server = await model(
        bash("zotctl sessions --json"),
        bash(f"zotctl export -s {other.id}"),
        bash("zotctl search secret"),
        text("Mine."),
    )
    talk = await shop.open(server)
    listed, exported, searched = await told(talk, look)
    assert talk.id in listed
    assert other.id not in listed
    assert f"was started for {talk.id} and cannot see other sessions (rule: " in exported
    assert "cannot see other sessions (rule: " in searched


async def test_it_does_not_choose_what_its_session_runs_in(process, model, look):
    talk = await Shop(process).open(None)
    server = await model(bash(python(STEAL.format(session=talk.id))), bash('echo "<$STOLEN>"'), text("Empty."))
    await talk.ask("session.configure", base_url=server.openai_url)
    attached, said = await told(talk, look)
    assert "[exit 0]" in attached
    assert "<>" in said


async def test_an_extension_sees_the_sessions_that_it_serves(process, model, look, tmp_path):
    shop = Shop(process)
    shop.write(
        "peek",
        """
        import subprocess

        @ext.tool
        def peek() -> str:
            "What zotctl shows."
            done = subprocess.run(["zotctl", "sessions", "--json"], capture_output=True, text=True)
            return done.stdout + done.stderr
        """,
    )
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    other, beside = await shop.open(None, cwd=str(elsewhere)), await shop.open(None)
    server = await model(calls(CallPart("peek")), text("Two."))
    talk = await shop.open(server)
    (said,) = await told(talk, look)
    assert talk.id in said
    assert beside.id in said
    assert other.id not in said


async def test_a_daemon_of_another_home_is_not_affected(process, model, look, tmp_path):
    home = f"ZOT_HOME={tmp_path / 'second'}"
    server = await model(
        bash(f"{home} zotctl sessions && {home} zotctl trust list && {home} zotctl status"),
        bash(f"{home} zotctl stop"),
        text("Served."),
    )
    for said in await told(await Shop(process).open(server), look):
        assert "[exit 0]" in said


def zot(prompt, *options):
    return shlex.join(["zot", "-p", "--no-session", "--provider", "openai", "--model", "small", *options, prompt])


async def test_a_descendant_cannot_create_sessions_by_default(process, model, look):
    server = await model(bash("zot -p hello"), text("Alone."))
    (said,) = await told(await Shop(process).open(server), look)
    assert "rule: descendants only read their own" in said
    assert 'nested = "submit"' in said


async def configured(house, text):
    """Have the daemon read this configuration."""
    (house.place.home / "config.toml").write_text(text)
    person = await house.connect(role="admin")
    await person.ask("daemon.reload")


@pytest.mark.parametrize("option", ["base-url", "api-key"])
async def test_a_nested_session_does_not_say_where_prompts_go(nesting, model, look, option):
    server = await model(bash(zot("below", f"--{option}", "http://127.0.0.1:9/v1")), text("Refused."))
    (said,) = await told(await Shop(nesting).open(server), look)
    assert "decides where keys and prompts are sent, which requires the role approve" in said


async def test_where_it_may_it_opens_one_that_is_gone_afterwards_and_opens_none_itself(nesting, model, look):
    answers: deque[Answer] = deque()
    server = await model(lambda _: answers.popleft())
    answers += (bash(zot("below")), bash(zot("deeper")), text("I was told: one level."), text("It said so."))
    talk = await Shop(nesting).open(server)
    await configured(nesting, f'[providers.openai]\nbase_url = "{server.openai_url}"\n')
    (said,) = await told(talk, look)
    assert "I was told: one level." in said
    assert "(rule: one level deep)" in str(server.requests[2].body)
    listed = (await talk.client.ask("session.list"))["sessions"]
    assert [one["id"] for one in listed] == [talk.id]
