"""A call that a person has chosen, in place of the first request of a run."""

from collections.abc import AsyncGenerator, Sequence

from zotd.core.records import Opening
from zotd.core.reply import CallArgs, CallEnd, CallStart, Counted, Part, RequestAccepted, Stopped
from zotd.wire.base import ENCODER
from zotd.wire.content import Tokens


async def made_by_a_person(opening: Opening) -> AsyncGenerator[Sequence[Part], None]:
    """Yield the call as if the model had made it; it costs nothing."""
    yield [
        RequestAccepted(),
        CallStart(0, opening.name),
        CallArgs(0, ENCODER.encode(opening.args).decode()),
        CallEnd(0),
        Counted(Tokens()),
        Stopped("tool_use"),
    ]
