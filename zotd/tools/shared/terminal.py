"""Runs a command in a terminal of the editor, if that gives one; else nothing has run, and the caller runs it itself.

    editor makes a terminal ──> the process in it asks ──> has begun ──> ends ──> the editor says how
         └── refuses, hangs, leaves: None                     └── the editor leaves: outcome unknown

Until the process has asked, nothing has run (`zotd.process.start_gate`), and once it has begun it is not run again.
"""

import asyncio
import logging
import re
from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct

from zotd.core.editor_terminals import EditorTerminal, TerminalEnd
from zotd.core.ports import ToolContext
from zotd.process import ChildLedger
from zotd.process.start_gate import Begun, StartGate
from zotd.tools.shared.builtin import in_thread

log = logging.getLogger(__name__)

BEGIN_S = 10.0
"""How long an editor may take to make a terminal in which the command begins; then it runs outside of the editor."""

END_S = 5.0
"""How long an editor may take to say how a command has ended that was ended here."""

OUTPUT_BYTES = 1024 * 1024
"""How much of the output an editor keeps: its end, of which the result shows some."""

UNPAGED = dict.fromkeys(("PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER"), "cat")
"""Variables for the terminal. A pager would wait for a key that nobody presses."""

ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
"""Colours, titles and movements of the cursor, which are for people."""


class TerminalRun(Struct, frozen=True):
    """What became of a command that has begun in a terminal."""

    end: TerminalEnd
    has_expired: bool = False
    """It was ended, because it took too long."""

    @property
    def output(self) -> str:
        """The output as text for a model: without escape sequences and what was overwritten on its line."""
        text = ESCAPES.sub("", self.end.output).replace("\r\n", "\n")
        return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))


async def run_in_terminal(
    words: str, argv: Sequence[str], context: ToolContext, patience: asyncio.Timeout
) -> TerminalRun | None:
    """Run `argv`; return None if it has not begun and will not. `words` say to people what it is.

    Safe to cancel, which ends it.
    """
    terminals = context.terminals
    assert terminals is not None, "the caller has to look"
    if not terminals.sockets:
        return None
    try:
        gate = await in_thread(lambda _: StartGate(terminals.sockets))
    except OSError as error:
        log.warning("a command runs outside of the editor, because no socket can be made: %s", error)
        return None
    try:
        terminal = terminals.open(context.call_id, gate.argv(words), cwd=context.cwd, output_bytes=OUTPUT_BYTES)
        begun = await _begun(gate, terminal, argv, context)
    finally:
        gate.close()
    return None if begun is None else await _outcome(begun, terminal, patience)


async def _begun(gate: StartGate, terminal: EditorTerminal, argv: Sequence[str], context: ToolContext) -> Begun | None:
    """Return the command once it has begun; None if it never will."""
    loop = asyncio.get_running_loop()
    ledger = ChildLedger.of(context.ledger) if context.ledger else None
    env = {**context.env, **UNPAGED}
    limit = asyncio.timeout(BEGIN_S)
    has_ended, is_waiting, begun = False, True, None

    def stop_waiting() -> None:
        nonlocal has_ended
        has_ended = True
        if is_waiting and not limit.expired():
            limit.reschedule(loop.time())

    terminal.watch(stop_waiting)
    try:
        async with limit:
            begun = await gate.let_in(argv, cwd=context.cwd, env=env, owners=(context.session,), ledger=ledger)
    except OSError as error:  # a timeout is one, too
        if has_ended:
            terminal.give_up((await terminal.ended()).error or "has made a terminal in which nothing begins")
        elif isinstance(error, TimeoutError):
            terminal.give_up(f"has not begun a command in a terminal within {BEGIN_S:g} s")
        else:
            terminal.give_up(f"cannot run commands in its terminals ({error})")
    finally:
        is_waiting = False
        if begun is None:
            terminal.kill()  # does nothing if it has ended
    return begun


async def _outcome(begun: Begun, terminal: EditorTerminal, patience: asyncio.Timeout) -> TerminalRun:
    """Wait for the end of the command, and see to it that there is one."""
    with suppress(TimeoutError):
        async with patience, begun:
            try:
                return TerminalRun(await terminal.ended())
            finally:
                terminal.kill()  # does nothing if it has ended
    try:
        async with asyncio.timeout(END_S):
            end = await terminal.ended()
    except TimeoutError:
        end = TerminalEnd(error="does not say what the output was")
    return TerminalRun(end, has_expired=True)
