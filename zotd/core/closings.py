"""Results of calls that have none, because their run ended before them (`docs/durability.md`, After a crash)."""

from zotd.core import records
from zotd.core.transcript import Transcript
from zotd.wire.content import Text, ToolCall

INTERRUPTED = "interrupted, outcome unknown"
"""Result of a call that had started when a crash cut it."""

NOT_RUN = "not run: the run ended before this call started"
"""Result of a call that never started."""

REPEATABLE = ("idempotent", "reconcile")
"""Replay classes of started calls that recovery may repeat. `safe` calls are not recorded as started at all."""


def closings(transcript: Transcript, time: str) -> list[records.CallResult]:
    """Return an error result for every open call, in order; applying them makes the messages valid for vendors."""
    return [_failed(transcript, call, time) for call in transcript.open_calls]


def unrepeatable(transcript: Transcript, time: str) -> list[records.CallResult]:
    """Return a result with unknown outcome for every started call that must not be repeated after a restart."""
    return [_failed(transcript, call, time) for call in transcript.open_calls if not _may_repeat(transcript, call.id)]


def _may_repeat(transcript: Transcript, key: str) -> bool:
    if key in transcript.ended:  # it is not repeated, and its outcome is known
        return True
    # Without a start record the call has not begun, or it is `safe`.
    started = transcript.started.get(key)
    return started is None or (started.within is None and started.replay in REPEATABLE)


def _failed(transcript: Transcript, call: ToolCall, time: str) -> records.CallResult:
    ended = transcript.ended.get(call.id)
    unknown = ended is None and call.id in transcript.started
    return records.CallResult(
        time=time,
        run=transcript.run or "",
        call_id=call.id,
        name=call.name,
        is_error=True,
        content=(ended and ended.result) or [Text(INTERRUPTED if unknown else NOT_RUN)],
        unknown=unknown,
    )
