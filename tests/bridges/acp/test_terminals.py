"""Commands in terminals of the editor: in the mode `yolo`, if a person wants it, and never twice."""

import asyncio
import signal
import sys

import pytest

from tests.bridges.acp.editor import WAIT_S
from tests.bridges.acp.terminals import Terminals
from tests.npm.packages import INSTALL_S
from zotd.bridges.acp.terminals import exit_code
from zotd.core.closings import INTERRUPTED
from zotd.process.census import identify, is_alive
from zotd.process.ladder import signal_all
from zotd.runs.tool_calls import ABORTED
from zotd.testing.script import CallPart, calls, text
from zotd.tools.shared import terminal
from zotd.wire.acp import TerminalStatus

pytestmark = pytest.mark.timeout(INSTALL_S + 20)

ON = "[editor]\nterminals = true"


def running(command, **more):
    return calls(CallPart("bash", {"command": command, **more}))


def result(here, number=1):
    """What the model reads of the call before this request."""
    return here.server.requests[number].messages[-1]["content"]


@pytest.fixture
async def terminals():
    async with Terminals() as terminals:
        yield terminals


def waiting(more=""):
    """A command that says its pid and then waits for ever."""
    return f"{more}echo waiting as $$; exec sleep 1000"


async def begun(terminals):
    """The process of the `waiting` command, once it runs."""
    pid = await terminals.until(r"waiting as (\d+)")
    found = identify(int(pid))
    assert found is not None
    return found


async def gone(process):
    """Wait until a process has ended."""
    await signal_all([process], 0, within_s=WAIT_S)
    assert not is_alive(process)


async def test_a_command_runs_in_a_terminal_of_the_editor(world, terminals):
    command = r'test -t 1 && printf "\033[31mred\033[0m\n10%%\r100%%\n"; echo "$OF_EDITOR|$TERM|$OF_SESSION|$PAGER"; pwd; exit 3'
    here = await world(running(command), text("done"), config=ON)
    editor = await here.editor(terminals=terminals, env={**here.env, "OF_SESSION": "yes"})
    assert await editor.say(await editor.open(here.cwd), "go") == "end_turn"
    # It has the session's environment and not the editor's, but for what describes the terminal.
    assert terminals.text() == f"\x1b[31mred\x1b[0m\r\n10%\r100%\r\n|xterm-test|yes|cat\r\n{here.cwd}\r\n"
    told = result(here)
    assert told.startswith(f"Error: $ {command}\n\nred\n100%\n|xterm-test|yes|cat\n{here.cwd}\n[exit 3]  Took ")
    assert [call for call, _ in terminals.calls] == ["create", "release"]
    shown = [update["content"] for update in editor.seen("tool_call_update") if "content" in update]
    assert shown == [[{"type": "terminal", "terminalId": "term_0"}]] * 2
    assert command[:20] in str(terminals.asked[0][-1])


async def test_a_long_output_is_cut_for_the_model_as_always(world, terminals):
    here = await world(running("seq 300000"), text("done"), config=ON)
    editor = await here.editor(terminals=terminals)
    await editor.say(await editor.open(here.cwd), "go")
    told = result(here)
    assert len(told) < 60_000
    assert told.startswith("$ seq 300000\n\n[… of the output, the editor has kept the last 1,048,576 bytes …]\n")
    assert "all of it is in" in told
    assert "\n299999\n300000\n[exit 0]" in told


async def test_a_command_runs_in_the_daemon_unless_a_person_has_set_it(world, terminals):
    here = await world(running("echo hello"), text("done"))
    editor = await here.editor(terminals=terminals)
    await editor.say(await editor.open(here.cwd), "go")
    assert "hello\n[exit 0]" in result(here)
    assert terminals.asked == []


async def test_a_command_of_another_mode_runs_in_the_daemon(world, terminals):
    here = await world(running("echo hello"), text("done"), config=ON)
    editor = await here.editor(terminals=terminals, answer="allow_once")
    session = await editor.open(here.cwd)
    await editor.agent.set_session_mode(session_id=session, mode_id="ask")
    await editor.say(session, "go")
    assert len(editor.asked) == 1
    assert "hello\n[exit 0]" in result(here)
    assert terminals.asked == []


async def test_an_editor_without_terminals_is_not_asked_for_one(world):
    here = await world(running("echo hello"), text("done"), config=ON)
    editor = await here.editor()
    await editor.say(await editor.open(here.cwd), "go")
    assert "hello\n[exit 0]" in result(here)
    assert "terminal" not in str(editor.frames[2:])


async def test_an_editor_that_refuses_leaves_the_command_to_the_daemon_and_is_not_asked_again(world):
    here = await world(running("echo one >> ran; cat ran"), running("echo two"), text("done"), config=ON)
    async with Terminals(refuses="no terminals today") as terminals:
        editor = await here.editor(terminals=terminals)
        await editor.say(await editor.open(here.cwd), "go")
    assert "one\n[exit 0]" in result(here)
    assert "two\n[exit 0]" in result(here, 2)
    assert len(terminals.asked) == 1
    assert "no terminals today" in editor.read()
    assert "commands run outside of its terminals until it opens the session again" in editor.read()


async def test_a_terminal_in_which_nothing_begins_leaves_the_command_to_the_daemon(world):
    here = await world(running("echo one >> ran; cat ran"), text("done"), config=ON)
    async with Terminals(python="/bin/false") as terminals:
        editor = await here.editor(terminals=terminals)
        await editor.say(await editor.open(here.cwd), "go")
    assert "one\n[exit 0]" in result(here)
    assert "nothing begins" in editor.read()
    assert terminals.released == {"term_0"}


async def test_an_editor_that_hangs_leaves_the_command_to_the_daemon_and_cannot_run_it_later(world, monkeypatch):
    monkeypatch.setattr(terminal, "BEGIN_S", 0.2)
    here = await world(running("echo one >> ran; cat ran"), text("done"), config=ON)
    async with Terminals(hangs=True) as terminals:
        editor = await here.editor(terminals=terminals)
        await editor.say(await editor.open(here.cwd), "go")
        assert "one\n[exit 0]" in result(here)
        assert "has not begun a command in a terminal within 0.2 s" in editor.read()
        terminals.go_on.set()
        await editor.until(lambda: terminals.released)
        await terminals.ended("term_0")
        assert "terminalId" not in str(editor.updates)
    assert (here.cwd / "ran").read_text() == "one\n"


async def test_a_terminal_that_comes_too_late_runs_nothing(world, monkeypatch):
    """Even if nobody releases it: the daemon has to let a command begin."""
    monkeypatch.setattr(terminal, "BEGIN_S", 0.2)
    here = await world(running("echo one >> ran; cat ran"), text("done"), config=ON)
    async with Terminals(hangs=True) as terminals:
        editor = await here.editor(terminals=terminals)
        await editor.say(await editor.open(here.cwd), "go")
        terminals.hangs = False
        name = await terminals.create(*_line(terminals), str(here.cwd), 1000)
        assert await terminals.ended(name) == (126, None)
        assert "zot has not run this here" in terminals.text(name)
    assert (here.cwd / "ran").read_text() == "one\n"


def _line(terminals):
    command, *args = terminals.asked[0]
    return command, args


async def test_a_timeout_ends_the_command_in_the_terminal(world, terminals):
    here = await world(running(waiting(), timeout=1), text("done"), config=ON)
    editor = await here.editor(terminals=terminals)
    await editor.say(await editor.open(here.cwd), "go")
    assert "\n[timed out after 1" in result(here)
    assert [call for call, _ in terminals.calls] == ["create", "kill", "release"]


async def test_an_abort_ends_the_command_in_the_terminal(world, terminals):
    here = await world(running(waiting()), text("done"), config=ON)
    editor = await here.editor(terminals=terminals)
    session = await editor.open(here.cwd)
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(editor.say(session, "go"))
        await begun(terminals)
        await editor.agent.cancel(session_id=session)
    assert asking.result() == "cancelled"
    await editor.until(lambda: terminals.released)
    assert [call for call, _ in terminals.calls] == ["create", "kill", "release"]
    await editor.say(session, "and now?")
    assert ABORTED in str(here.server.requests[1].body)


async def test_an_abort_before_the_command_has_begun_runs_nothing(world):
    here = await world(running("echo ran > ran"), text("done"), config=ON)
    async with Terminals(hangs=True) as terminals:
        editor = await here.editor(terminals=terminals)
        session = await editor.open(here.cwd)
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(editor.say(session, "go"))
            await editor.until(lambda: "terminal/create" in str(editor.frames))
            await editor.agent.cancel(session_id=session)
        assert asking.result() == "cancelled"
        terminals.go_on.set()
        await editor.until(lambda: terminals.released)
        await terminals.ended("term_0")
        assert "terminalId" not in str(editor.updates)
    assert not (here.cwd / "ran").exists()


async def test_a_person_who_closes_the_terminal_ends_the_command(world, terminals):
    here = await world(running(waiting()), text("done"), config=ON)
    editor = await here.editor(terminals=terminals)
    async with asyncio.TaskGroup() as group:
        group.create_task(editor.say(await editor.open(here.cwd), "go"))
        pid = await begun(terminals)
        terminals.kill("term_0")
    assert "[exit 137]" in result(here)
    await gone(pid)


@pytest.mark.parametrize("dies", ["zot acp", "editor"])
async def test_the_outcome_is_unknown_when_the_editor_goes_in_the_middle(world, terminals, dies):
    wanted = [CallPart("bash", {"command": command}) for command in (waiting(), "touch second")]
    here = await world(calls(*wanted), text("I see."), config=ON)
    first, second = await here.editor(terminals=terminals), await here.editor()
    session = await first.open(here.cwd)
    await second.agent.load_session(cwd=str(here.cwd), session_id=session)
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(first.refused(first.say(session, "go")))
        pid = await begun(terminals)
        asking.cancel()
        if dies == "editor":
            await first.__aexit__(None, None, None)
        else:
            first.process.kill()
    await second.until(lambda: second.read().endswith("I see."))
    told = here.server.requests[1].messages[-2]["content"]
    assert told.startswith(f"Error: {INTERRUPTED}: the command ran in a terminal of the editor, which has gone")
    assert not (here.cwd / "second").exists()  # what was to follow it is not made
    await gone(pid)


async def test_the_outcome_is_unknown_when_the_daemon_goes_in_the_middle_and_nothing_is_repeated(world, terminals):
    here = await world(running(waiting("echo x >> ran; ")), text("I see."), config=ON, process=True)
    editor = await here.editor(terminals=terminals)
    session = await editor.open(here.cwd)
    async with asyncio.TaskGroup() as group:
        asking = group.create_task(editor.refused(editor.say(session, "go")))
        pid = await begun(terminals)
        here.daemon.end(signal.SIGKILL)
    assert "this run was cut off" in asking.result()[1]
    await editor.until(lambda: terminals.released)
    assert ("kill", "term_0") in terminals.calls
    await gone(pid)
    assert await editor.say(session, "/continue") == "end_turn"
    assert result(here) == f"Error: {INTERRUPTED}"
    assert (here.cwd / "ran").read_text() == "x\n"


async def test_a_command_in_a_terminal_may_do_no_more_than_one_of_the_daemon(world, terminals):
    asking = f"{sys.executable} -m zotd.cli zotctl session delete s_other"
    here = await world(running(asking), text("done"), config=ON)
    editor = await here.editor(terminals=terminals)
    await editor.say(await editor.open(here.cwd), "go")
    assert "started by zotd" in result(here)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (TerminalStatus(3), 3),
        (TerminalStatus(None, "SIGTERM"), 143),
        (TerminalStatus(None, "kill"), 137),
        (TerminalStatus(None, "9"), 137),
        (TerminalStatus(None, "SIGWHAT"), None),
        (TerminalStatus(), None),
    ],
)
def test_an_exit_is_told_as_shells_do(status, code):
    assert exit_code(status) == code
