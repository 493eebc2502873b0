"""Asks the model for a summary of a transcript: what `compact` and the automatic compaction share."""

from collections.abc import Sequence
from dataclasses import dataclass

from zotd.clock import rfc3339
from zotd.core import compaction, records
from zotd.core.ports import Model, ModelRequest
from zotd.core.reply import Assembler
from zotd.core.retry import Failure, ModelError
from zotd.sessions.ledger import Shown
from zotd.wire import events
from zotd.wire.content import Message, Tokens


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary, and how many of the newest messages stay beside it."""

    text: str
    kept: int
    tokens: Tokens | None


async def summarise(model: Model, messages: Sequence[Message], instructions: str = "") -> Summary:
    """Summarise all of `messages` but the tail that stays.

    Raises:
        ModelError: the request failed, the summary is empty, or there is nothing to summarise.
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
    async for parts in model.stream(request):
        assembler.feed(parts)
    text = assembler.text().strip()
    if not text:
        raise ModelError(Failure.REFUSED, "the model returned an empty summary; the transcript stays as it is")
    tokens = None if assembler.tokens is None else model.price(assembler.tokens)
    return Summary(text, kept, tokens)


def _no_calls() -> str:
    return "ignored"  # no tools are offered; a call that comes all the same is not run


def compaction_records(run: str, settings: records.Settings, summary: Summary) -> list[Shown]:
    """A summary as records: what it took, and the record that moves what the model sees."""
    row = records.UsageRow(
        time=rfc3339(),
        run=run,
        step=0,
        provider=settings.provider,
        model=settings.model,
        tokens=summary.tokens,
        purpose="compaction",
    )
    record = records.Compaction(time=rfc3339(), summary=summary.text, kept=summary.kept)
    return [Shown(row), Shown(record, [events.CompactDone(summary.text)])]
