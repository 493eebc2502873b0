"""Starts a call again that a crash has cut, when its tool says how that may be done (`docs/durability.md`).

    idempotent ──> again, with the same arguments and the same operation key
    reconcile  ──> "what became of it?" ──> completed: that answer; not_started: as above
                      unknown: asked again, `ASKS` times in all, then "possibly applied"

The tool must still promise now what it promised then; otherwise nothing is repeated.
"""

import asyncio

from msgspec.structs import replace

from zotd.core.closings import INTERRUPTED
from zotd.core.ports import Replay, StorageError, Tool, ToolContext, ToolOutcome
from zotd.core.records import ApprovalRow, CallStarted
from zotd.ledger.ledger import Ledger
from zotd.wire.content import Text

ASKS = 5
"""How often a tool is asked about the outcome of a call."""

PAUSE_S = 0.5
"""Before it is asked again, doubled each time: 7.5 s in all, for a service that is starting as we are."""


def check_lease(ledger: Ledger) -> None:
    """Have the session write no more, and raise StorageError, if another process may have it by now."""
    check = ledger.journal.check_lease
    if check is None:
        return
    try:
        check()
    except StorageError as error:
        ledger.fail(error)
        raise


async def repeat(tool: Tool | None, started: CallStarted, context: ToolContext, ledger: Ledger) -> ToolOutcome:
    """The outcome of a call that had started when the daemon stopped. Safe to cancel.

    Raises:
        StorageError: another process may have the session by now; nothing was repeated.
    """
    context = replace(context, operation_key=started.operation_key)
    if tool is None or tool.replay != started.replay:  # what was promised for the call does not hold any more
        return _unknown(INTERRUPTED)
    if tool.replay is Replay.IDEMPOTENT:
        check_lease(ledger)
        return await tool.run(started.args, context)
    if tool.replay is Replay.RECONCILE:
        return await _reconcile(tool, started, context, ledger)
    return _unknown(INTERRUPTED)


async def _reconcile(tool: Tool, started: CallStarted, context: ToolContext, ledger: Ledger) -> ToolOutcome:
    question = replace(context, reconcile=True)
    for ask in range(ASKS):
        if ask > 0:
            await asyncio.sleep(PAUSE_S * 2 ** (ask - 1))
        answer = await tool.run(started.args, question)
        if answer.state == "completed":
            return answer
        if answer.state == "not_started":
            check_lease(ledger)
            return await tool.run(started.args, context)
    return _unknown(f"possibly applied: {started.name} was interrupted, and cannot tell whether it happened")


def known_outcome(row: ApprovalRow) -> ToolOutcome:
    """Return the outcome of a call that had ended before the crash, and waits for a decision."""
    paths = row.args.get("paths")
    closed = tuple(map(str, paths)) if isinstance(paths, list) else ()
    return ToolOutcome(row.result or [], is_error=True, closed=closed)


def _unknown(text: str) -> ToolOutcome:
    return ToolOutcome([Text(text)], is_error=True, state="unknown")
