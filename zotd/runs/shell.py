"""A command that a person runs in a session, beside what the model does (`docs/protocol.md`, Commands of people).

    on record ──> runs, its output shown while it comes ─┬─> over, or aborted: its result on record, and shown
                                                         └─> the daemon stops: `interrupted` at its next start

It takes the place of a run: nothing else runs meanwhile, an abort ends it, and it has exactly one `done`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from msgspec.structs import replace

from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.ports import ToolContext
from zotd.ledger.ledger import Ledger, Shown
from zotd.tools import bash
from zotd.tools.shared import ToolError
from zotd.wire import events
from zotd.wire.api import Partial, RunInfo
from zotd.wire.content import ShellRun, Text
from zotd.wire.errors import CommandError

ShellContext = Callable[[str, Callable[[str], None]], ToolContext]
"""Gives what a call with this id runs with, and shows its progress."""

ABORTED = "aborted, and ended with all that it had started"

NOT_STARTED = 126
"""The exit code of a command that could not be started, as shells have it."""

UNKNOWN = "$ {command}\n\n[the daemon stopped while this ran: it may have happened, and is not run again]"


class ShellCommand:
    """One command of one session; abort it like a run."""

    def __init__(
        self,
        order: records.ShellStarted,
        ledger: Ledger,
        *,
        grounds: Callable[[], Awaitable[ShellContext]],
        rest: Callable[[], str],
    ) -> None:
        """`grounds` prepares what it runs with; `rest` is the session's state when it is over."""
        self._order = order
        self._ledger = ledger
        self._grounds = grounds
        self._rest = rest
        self._is_aborted = False
        self._patience: asyncio.Timeout | None = None
        """It runs until a user aborts it."""

    async def run(self, *, accepted: Callable[[], None], done_shown: Callable[[], None]) -> str:
        """Run it; returns `end_turn`, however it ended: what waits goes on.

        `accepted` is called when it is on record, `done_shown` just before its `done` is shown.
        """
        order = self._order
        started = events.ShellStart(order.id, order.command, order.context, order.sender or None)
        await self._ledger.write([Shown(order, [started])], durable=True, state="running", accepted=accepted)
        shown, text = await self._outcome()
        result = _result(order, shown, text)
        await self._ledger.write([result], durable=True, accepted=done_shown, state=self._rest())
        return "end_turn"

    def abort(self) -> None:
        """End it now, with all that it has started."""
        self._is_aborted = True
        if self._patience is not None:
            with suppress(RuntimeError):  # it has ended, and its output is being stored: there is nothing to cut short
                self._patience.reschedule(asyncio.get_running_loop().time())
            self._patience = None  # it can be moved no more once it is over

    def info(self) -> RunInfo:
        """Return the command as a snapshot shows it."""
        return RunInfo(self._order.id, 0, self._order.time, Partial("", []), _shown(self._order))

    async def _outcome(self) -> tuple[ShellRun, str]:
        """How it ended, and what is to be read of it."""
        order = self._order
        try:
            context = (await self._grounds())(order.id, self._progress)
        except CommandError as error:
            return _shown(order, exit=NOT_STARTED), f"$ {order.command}\n\nnot run: {error.sentence}"
        if self._is_aborted:
            return _shown(order), bash.CommandFinished("", None, 0).told(order.command, ABORTED)
        self._patience = asyncio.timeout(None)
        try:
            # Not to be sent to the background: its end is a message.
            finished = await bash.run(order.command, replace(context, jobs=None), self._patience)
        except ToolError as error:
            return _shown(order, exit=NOT_STARTED), f"$ {order.command}\n\n{error}"
        finally:
            self._patience = None
        shown = _shown(order, exit=finished.code, took_s=round(finished.took_s, 3))
        return shown, finished.told(order.command, ABORTED if finished.code is None else "")

    def _progress(self, text: str) -> None:
        self._ledger.live([events.ToolProgress(self._order.id, text, session=self._ledger.label)])


def interrupted(order: records.ShellStarted, now: str) -> Shown:
    """The result of a command that the daemon did not see to its end."""
    text = UNKNOWN.format(command=order.command)
    return _result(order, _shown(order, interrupted=True), text, now)


def _shown(order: records.ShellStarted, **outcome: object) -> ShellRun:
    return ShellRun(id=order.id, command=order.command, context=order.context, **outcome)  # type: ignore[arg-type]  # by name


def _result(order: records.ShellStarted, shown: ShellRun, text: str, now: str | None = None) -> Shown:
    record = records.ShellResult(
        time=now or rfc3339(),
        id=order.id,
        context=order.context,
        content=[Text(text)],
        exit=shown.exit,
        unknown=shown.interrupted,
    )
    message = events.UserMessage([Text(text)], record.time, run=order.id, sender=order.sender or None, shell=shown)
    return Shown(record, [message, events.Done(run=order.id)])
