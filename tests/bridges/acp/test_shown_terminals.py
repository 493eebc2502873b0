"""Terminals that an editor shows and zot fills: the daemon runs the command as always."""

import asyncio

import msgspec
import pytest

from tests.npm.packages import INSTALL_S
from zotd.bridges.acp.calls import PathResolver
from zotd.bridges.acp.updates import Updates
from zotd.testing.script import CallPart, calls, text
from zotd.wire import events
from zotd.wire.content import Text

pytestmark = pytest.mark.timeout(INSTALL_S + 20)

SHOWS = {"terminal_output": True}

COLOURED = r"printf '\033[31mred\033[0m\n'; until [ -e go ]; do sleep 0.01; done; echo end; exit 3"


def running(command):
    return calls(CallPart("bash", {"command": command}))


async def test_the_output_of_a_command_is_shown_live_and_in_colour(world):
    here = await world(running(COLOURED), text("done"))
    editor = await here.editor(meta=SHOWS)
    session = await editor.open(here.cwd)
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(editor.say(session, "go"))
        await editor.until(lambda: editor.shown()[0] == "\x1b[31mred\x1b[0m\n")
        (here.cwd / "go").touch()
    assert asking.result() == "end_turn"
    assert editor.shown() == ("\x1b[31mred\x1b[0m\nend\n", [(3, None)])
    start, later = editor.seen("tool_call")[0], editor.seen("tool_call_update")
    assert start["_meta"]["terminal_info"] == {"terminal_id": start["toolCallId"], "cwd": str(here.cwd)}
    terminal = [{"type": "terminal", "terminalId": start["toolCallId"]}]
    assert [update["content"] for update in [start, *later] if "content" in update] == [terminal] * 3
    # The model gets what it always gets.
    assert "\x1b[31mred\x1b[0m\nend\n[exit 3]" in here.server.requests[1].messages[-1]["content"]


async def test_a_terminal_of_an_earlier_command_is_filled_when_a_session_is_loaded(world):
    here = await world(running("echo hello"), text("done"))
    first = await here.editor(meta=SHOWS)
    session = await first.open(here.cwd)
    await first.say(session, "go")
    second = await here.editor(meta=SHOWS)
    await second.agent.load_session(cwd=str(here.cwd), session_id=session)
    await second.until(lambda: second.shown()[1])
    assert second.shown() == ("hello\n", [(0, None)])


@pytest.mark.parametrize("meta", [None, {}, {"terminal_output": False}, {"terminal_output": {"of": "another"}}])
async def test_an_editor_that_does_not_say_so_gets_text(world, meta):
    here = await world(running("echo hello"), text("done"))
    editor = await here.editor(meta=meta)
    await editor.say(await editor.open(here.cwd), "go")
    assert "terminal" not in str(editor.updates)
    assert "hello" in editor.seen("tool_call_update")[-1]["content"][0]["content"]["text"]


BASH: dict[str, object] = {"command": "make"}

RESULT = "$ make\n\none\ntwo\n[exit 2]  Took 0.1s"


@pytest.fixture
def terminal():
    """`terminal(event, ...)`: what an editor that shows terminals is told of a call `c` of bash, as JSON."""

    def terminal(*heard):
        shown = Updates(PathResolver("/src"), shows_terminals=True)
        return [update for event in heard for update in msgspec.to_builtins([*shown.of(event)])]

    return terminal


STARTED = (events.ToolUseStart(id="c", name="bash"), events.ToolCallEvent(id="c", name="bash", args=BASH))


def test_a_terminal_is_made_with_the_first_frame_of_a_call_and_kept_by_the_later_ones(terminal):
    start, call = terminal(*STARTED)
    assert start["content"] == call["content"] == [{"type": "terminal", "terminalId": "c"}]
    assert start["_meta"] == {"terminal_info": {"terminal_id": "c", "cwd": "/src"}}
    assert "_meta" not in call


def test_a_terminal_gets_output_as_it_comes_and_then_only_how_it_ended(terminal):
    grown, ended = terminal(
        *STARTED,
        events.ToolProgress(id="c", text="\x1b[31mone\x1b[0m\ntwo\n"),
        events.ToolResultEvent(id="c", is_error=True, content=[Text(RESULT)]),
    )[2:]
    assert grown["_meta"] == {"terminal_output": {"terminal_id": "c", "data": "\x1b[31mone\x1b[0m\ntwo\n"}}
    assert "content" not in grown
    assert ended["_meta"] == {"terminal_exit": {"terminal_id": "c", "exit_code": 2, "signal": None}}
    assert ended["content"] == [{"type": "terminal", "terminalId": "c"}]
    assert ended["rawOutput"] == {"is_error": True, "output": [RESULT]}


@pytest.mark.parametrize(
    ("shown", "result", "rest", "code"),
    [
        ("", RESULT, "one\ntwo\n", 2),
        ("one", "$ make\n\none\n[exit 0]  Took 0.1s", None, 0),
        ("one", "$ x\n\none\n[exit 1]  Took 0.1s\n\n[The jail has refused.]", "\n[The jail has refused.]", 1),
        ("[exit 0]  Took 9s\n", "$ x\n\n[exit 0]  Took 9s\n[exit 3]  Took 0.1s", None, 3),
        ("a\n", "$ x\n\na\n[timed out after 1.0 s]  Took 1.0s", "[timed out after 1.0 s]  Took 1.0s", None),
        ("", "denied by the user", "denied by the user", None),
        ("one\n", "interrupted, outcome unknown", "interrupted, outcome unknown", None),
    ],
)
def test_a_terminal_gets_what_was_not_shown_before_and_what_was_remarked(terminal, shown, result, rest, code):
    progress = [events.ToolProgress(id="c", text=shown)] if shown else []
    ended = terminal(*STARTED, *progress, events.ToolResultEvent(id="c", is_error=False, content=[Text(result)]))[-1]
    assert ended["_meta"].get("terminal_output") == (None if rest is None else {"terminal_id": "c", "data": rest})
    assert ended["_meta"]["terminal_exit"] == {"terminal_id": "c", "exit_code": code, "signal": None}


def test_a_call_of_another_tool_has_no_terminal(terminal):
    called = terminal(events.ToolUseStart(id="c", name="read"), events.ToolCallEvent(id="c", name="read", args={}))
    assert "terminal" not in str(called)
