"""Asks the model for a summary of a transcript: what `compact` and the automatic compaction share."""

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass

from zotd.clock import rfc3339
from zotd.core import compaction, records
from zotd.core.ports import Model, ModelRequest
from zotd.core.reply import Assembler
from zotd.core.retry import Failure, ModelError
from zotd.ledger.ledger import Shown
from zotd.runs.billing import RequestBilling
from zotd.wire import events
from zotd.wire.content import Message


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary, and how many of the newest messages stay beside it."""

    text: str
    kept: int


async def summarise(
    billing: RequestBilling, model: Model, messages: Sequence[Message], instructions: str = ""
) -> Summary:
    """Summarise all of `messages` but the tail that stays. `billing` pays; what it took is to be billed there.

    Raises:
        ModelError: the request failed, a budget is used up, the summary is empty, or there is nothing to summarise.
    """
    kept = compaction.kept(messages)
    older = messages[: len(messages) - kept]
    if not older:
        raise ModelError(Failure.REFUSED, "nothing to compact: the transcript is empty")
    request = ModelRequest(
        system=compaction.SYSTEM,
        messages=compaction.request(older, instructions),
        tools=(),
        max_output=compaction.MAX_OUTPUT,
    )
    assembler = Assembler(None, _no_calls)
    billing.admit()
    async with aclosing(model.stream(request)) as chunks:
        async for parts in chunks:
            billing.answered(assembler)
            assembler.feed(parts)
            assembler.check()
    text = assembler.text().strip()
    if not text:
        raise ModelError(Failure.REFUSED, "the model returned an empty summary; the transcript stays as it is")
    return Summary(text, kept)


def _no_calls() -> str:
    return "ignored"  # no tools are offered; a call that comes all the same is not run


def compaction_record(summary: Summary, known: list[records.Known]) -> Shown:
    """A summary as the record that moves what the model sees; `known`: the requests that it must not leave behind."""
    record = records.Compaction(time=rfc3339(), summary=summary.text, kept=summary.kept, known=known)
    return Shown(record, [events.CompactDone(summary.text)])
