"""MCP servers that an editor brings along."""

import asyncio
import json
import stat

import pytest
from acp.schema import EnvVariable, HttpMcpServer, McpServerStdio

from tests.bridges.conftest import program
from tests.e2e.shop import until_state
from tests.npm.packages import INSTALL_S
from zotd.bridges.acp.servers import NAME_CHARS, editor_servers
from zotd.core import supervision
from zotd.testing.script import CallPart, calls, text
from zotd.testing.wire_client import WireClient
from zotd.wire.mcp import McpServer, checked_servers, expanded

pytestmark = pytest.mark.timeout(INSTALL_S + 20)


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Not ready until it says so: on a busy machine a bridge takes longer than the daemon waits for it."""
    monkeypatch.setattr(supervision, "READY_S", 60)


def sample(name, **variables):
    env = [EnvVariable(name=key, value=value) for key, value in variables.items()]
    entry = program("sample_server")
    return McpServerStdio(name=name, command=str(entry["command"]), args=[str(one) for one in entry["args"]], env=env)


async def listed(client, session, what):
    """The extensions of a session by name, each with one of its fields."""
    return [(one["name"], one[what]) for one in (await client.ask("ext.list", session=session))["extensions"]]


async def test_the_model_calls_a_tool_of_the_editor_s_server(world):
    here = await world(calls(CallPart("my-files__echo", {"text": "hello"})), text("done"))
    editor = await here.editor()
    assert editor.introduced.agent_capabilities.mcp_capabilities.http
    async with WireClient.connect(here.place.socket) as other:
        await other.ask("subscribe", topics=["extensions"])
        session = await editor.open(here.cwd, sample("my files", INSTRUCTIONS="It is ${HOME}, word for word."))
        await until_state(other, "mcp-my-files", "ready")
        assert await listed(other, session, "source") == [("mcp-my-files", "session")]
        assert await listed(other, await editor.open(here.cwd), "source") == []
    assert await editor.say(session, "go") == "end_turn"
    [result] = [one for one in editor.seen("tool_call_update", session) if one["status"] == "completed"]
    assert result["content"][0]["content"]["text"] == "hello"
    assert "It is ${HOME}, word for word." in str(here.server.requests[0].body)
    [file] = (here.place.home / "client-servers").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_a_question_of_a_server_is_a_form_for_editors_that_have_forms(world):
    here = await world(calls(CallPart("srv__book")), text("done"))
    editor = await here.editor(forms={"seats": "2", "place": "window"})
    async with WireClient.connect(here.place.socket) as other:
        await other.ask("subscribe", topics=["extensions"])
        session = await editor.open(here.cwd, sample("srv"))
        await until_state(other, "mcp-srv", "ready")
    assert await editor.say(session, "Book!") == "end_turn"
    [message] = editor.messages
    assert message.startswith("mcp-srv asks: Which seats?")
    assert "2 at the window" in str(here.server.requests[1].body)
    assert editor.asked == []


async def test_a_session_that_is_loaded_gets_them_and_one_that_is_resumed_without_them_loses_none_of_another_editor(
    world,
):
    here = await world(text("hi"))
    first = await here.editor()
    session = await first.open(here.cwd)
    await first.say(session, "hi")
    async with WireClient.connect(here.place.socket) as other:
        await other.ask("subscribe", topics=["extensions"])
        await first.agent.load_session(cwd=str(here.cwd), session_id=session, mcp_servers=[sample("one")])
        await until_state(other, "mcp-one", "ready")
        second = await here.editor()
        await second.agent.resume_session(cwd=str(here.cwd), session_id=session, mcp_servers=[sample("two")])
        await until_state(other, "mcp-two", "ready")
        assert await listed(other, session, "state") == [("mcp-two", "ready"), ("mcp-one", "ready")]


async def test_a_server_that_is_not_used_is_told_in_the_session(world):
    here = await world(text("hi"))
    editor = await here.editor()
    broken = McpServerStdio(name="broken", command="/nowhere/at-all", args=[], env=[])
    empty = HttpMcpServer(type="http", name="empty", url="", headers=[])
    async with WireClient.connect(here.place.socket) as other:
        await other.ask("subscribe", topics=["extensions"])
        session = await editor.open(here.cwd, broken, empty)
        await until_state(other, "mcp-broken", "restarting")
    await editor.say(session, "hi")
    assert 'the MCP server "empty" is not used' in editor.read()
    await editor.until(lambda: "mcp-broken" in editor.read())


async def test_they_are_there_again_after_a_restart_of_the_daemon(world, ended):
    here = await world(text("hi"), process=True)
    editor = await here.editor()
    session = await editor.open(here.cwd, sample("files"))
    await editor.say(session, "hi")
    here.daemon.end()
    await editor.agent.list_sessions()  # starts a daemon
    async with WireClient.connect(here.place.socket) as other, asyncio.timeout(60):
        pid = (await other.ask("hello", role="admin"))["pid"]
        await other.ask("attach", session=session)
        await other.ask("subscribe", topics=["extensions"])
        while not (await other.ask("ext.list", session=session))["extensions"]:
            await other.event()
        await other.ask("daemon.shutdown")
        await ended(pid)
    assert not list((here.place.home / "client-servers").iterdir())


def test_names_become_unique_and_short():
    names = ["a b", "a-b", "é", "x" * 100, "a b"]
    found = editor_servers([{"name": name, "command": "/bin/x", "args": [], "env": []} for name in names])
    assert list(found.entries) == ["a-b", "a-b-2", "-", "x" * NAME_CHARS, "a-b-3"]
    assert found.faults == []


@pytest.mark.parametrize(
    ("server", "fault"),
    [
        ({"name": "a", "command": 3}, '"a" of the editor is not used'),
        ({"command": "/bin/x"}, "1 of the editor is not used"),
        ({"name": "a", "type": "ws", "url": "ws://x"}, 'its transport "ws" is not supported'),
    ],
)
def test_an_entry_that_makes_no_sense_is_a_sentence(server, fault):
    found = editor_servers([server, {"name": "fine", "type": "http", "url": "http://x", "headers": []}])
    assert list(found.entries) == ["fine"]
    [sentence] = found.faults
    assert fault in sentence


def test_what_an_editor_writes_is_meant_word_for_word():
    said = "${HOME:-x} $HOME ${${A}}"
    entry = {"name": "a", "command": f"/bin/{said}", "args": [said], "env": [{"name": "A", "value": said}]}
    found = checked_servers(json.loads(json.dumps(editor_servers([entry]).entries)))["a"]
    assert isinstance(found, McpServer)
    server = expanded(found, {"HOME": "elsewhere", "A": "b"})
    assert (server.command, server.args, server.env) == (f"/bin/{said}", (said,), {"A": said})
