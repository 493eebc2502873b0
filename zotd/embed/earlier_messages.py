"""Lets a new session continue a conversation of which only the messages are there."""

from collections.abc import Iterator, Sequence

from zotd import ids
from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.closings import closings
from zotd.core.records import AnyRecord
from zotd.ledger.ledger import Ledger, Shown
from zotd.wire.content import Message, ToolCall, ToolResult


async def continue_after(ledger: Ledger, messages: Sequence[Message]) -> None:
    """Put these messages, oldest first, into the transcript of a session that has none. They cost nothing.

    A call without a result gets one that says so, because vendors refuse it otherwise.
    """
    if not messages:
        return
    await ledger.write([Shown(record) for record in _records(ledger, messages)], durable=False)
    now = rfc3339()
    ending: list[AnyRecord] = [*closings(ledger.transcript, now)]
    # Whatever was under way in that conversation is over.
    ending.append(records.ForkRow(time=now, session="", at=0))
    await ledger.write([Shown(record) for record in ending], durable=False)


def _records(ledger: Ledger, messages: Sequence[Message]) -> Iterator[AnyRecord]:
    """The records that these messages would have come from."""
    settings, run, names = ledger.row.settings, ids.new("r"), dict[str, str]()
    for step, message in enumerate(messages, 1):
        names.update((block.id, block.name) for block in message.content if isinstance(block, ToolCall))
        if message.role == "user":
            key = ids.new("i")
            yield records.Input(time=message.time, id=key, content=message.content)
            yield records.Attempt(
                time=message.time,
                run=run,
                step=step,
                number=1,
                provider=settings.provider,
                model=settings.model,
                input=key,
            )
        elif message.role == "assistant":
            calls = any(isinstance(block, ToolCall) for block in message.content)
            stop = "tool_use" if calls else "end_turn"
            yield records.Reply(time=message.time, run=run, step=step, content=message.content, stop=stop)
        else:
            for block in (one for one in message.content if isinstance(one, ToolResult)):
                yield records.CallResult(
                    time=message.time,
                    run=run,
                    call_id=block.call_id,
                    name=names.get(block.call_id, ""),
                    is_error=block.is_error,
                    content=block.content,
                )
