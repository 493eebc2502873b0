"""What the readers of session files share."""

from dataclasses import dataclass

from zotd.core import records
from zotd.core.closings import INTERRUPTED
from zotd.core.records import AnyRecord, Settings
from zotd.history.draft import Draft
from zotd.runs.tool_calls import cut_results
from zotd.wire.content import Text, ToolCall


class BadLineError(ValueError):
    """A line that cannot be understood; the message says why, without its number."""


@dataclass(frozen=True, slots=True)
class SourceSession:
    """What a file says of the session that is in it."""

    session: str
    """Its id there."""
    name: str
    cwd: str
    created: str
    """RFC 3339; empty: it does not say."""
    settings: Settings
    left_out: str | None = None
    """What of the file could not be taken over; None: nothing."""


class OpenCalls:
    """The calls that have no result yet: each gets one before anything else is said."""

    def __init__(self) -> None:
        self._calls: dict[str, ToolCall] = {}

    def follow(self, record: AnyRecord) -> None:
        """Take note of a record."""
        match record:
            case records.Reply(content=content):
                self._calls.update((block.id, block) for block in content if isinstance(block, ToolCall))
            case records.CallResult(call_id=key):
                self._calls.pop(key, None)
            case _:
                pass

    def named(self, key: str) -> str | None:
        """The tool of an open call; None: there is no such call."""
        call = self._calls.get(key)
        return call.name if call else None

    def close(self, draft: Draft, *, run: str, time: str) -> None:
        """Add what stands for the results that are missing."""
        calls, self._calls = self._calls, {}
        missing = [
            records.CallResult(
                time=time,
                run=run,
                call_id=call.id,
                name=call.name,
                is_error=True,
                content=[Text(INTERRUPTED)],
                unknown=True,
            )
            for call in calls.values()
        ]
        for item in cut_results(missing):
            draft.add(item.record, item.shows)
