"""The tool `wake_later`: the model is prompted again after a time, with a note of its own (`docs/timers.md`).

Whoever runs sessions keeps the timer (`ToolContext.wake`, `zotd.sessions.wakes`).
"""

from typing import Annotated

import msgspec
from msgspec import Meta

from zotd.core.ports import Replay, ToolContext, ToolOutcome
from zotd.core.wakes import MAX_WAKE_S, MIN_WAKE_S, NAME, NOTE_CHARS, WakeError, WakeOrder
from zotd.tools.shared import BuiltinTool, ToolError, text_outcome
from zotd.wire.intervals import interval_words, read_interval


class WakeLaterArgs(msgspec.Struct, frozen=True):
    """Arguments of `wake_later`."""

    after: Annotated[
        str,
        Meta(
            description=f"How long from now, such as 10m or 2h; {interval_words(MIN_WAKE_S)} to {interval_words(MAX_WAKE_S)}"
        ),
    ]
    note: Annotated[
        str,
        Meta(min_length=1, max_length=NOTE_CHARS, description="What you are to do or look at then; you are told it"),
    ]


async def _wake_later(args: WakeLaterArgs, context: ToolContext) -> ToolOutcome:
    if context.wake is None:
        raise ToolError("nothing can wake you in this session; say what is left to be done")
    seconds = read_interval(args.after)
    if seconds is None or not MIN_WAKE_S <= seconds <= MAX_WAKE_S:
        bounds = f"{interval_words(MIN_WAKE_S)} to {interval_words(MAX_WAKE_S)}"
        raise ToolError(f'"{args.after}" is no time from {bounds}; 10m and 2h are')
    try:
        return text_outcome(await context.wake(WakeOrder(seconds, args.note), context.call_id))
    except WakeError as error:
        raise ToolError(str(error)) from error


TOOL = BuiltinTool(
    WakeLaterArgs,
    _wake_later,
    name=NAME,
    description=(
        "Be woken later with a note of yours, for what takes longer than you should wait: a CI run, a deployment. End your turn "
        "afterwards. The user sees it and may remove it."
    ),
    parallel=True,
    # A repeated call finds the timer that it has begun, by the id of the call. `SAFE` would not do: the id is recorded later then.
    replay=Replay.IDEMPOTENT,
)
