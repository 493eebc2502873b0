"""Calls that a person has chosen, in place of the first request of a run."""

from collections.abc import AsyncGenerator, Sequence

from zotd.core.records import Opening
from zotd.core.reply import CallArgs, CallEnd, CallStart, Counted, Part, RequestAccepted, Stopped
from zotd.wire.base import ENCODER
from zotd.wire.content import Tokens


async def made_by_a_person(opening: Opening) -> AsyncGenerator[Sequence[Part], None]:
    """Yield the calls as if the model had made them; they cost nothing."""
    calls: list[Part] = []
    for index, args in enumerate([opening.args, *opening.more]):
        calls += [CallStart(index, opening.name), CallArgs(index, ENCODER.encode(args).decode()), CallEnd(index)]
    yield [RequestAccepted(), *calls, Counted(Tokens()), Stopped("tool_use")]
