"""Finds an image of a stored message; events have only its size."""

from collections.abc import AsyncIterator, Sequence

from zotd.core import records
from zotd.core.ports import Journal, Stored
from zotd.wire import events
from zotd.wire.content import Block, Image, Text
from zotd.wire.errors import Code, CommandError

PAGE_BYTES = 128 * 1024
"""Size of the records that are read at a time: about 1 ms of the event loop."""

SPANS = (8, 64, 512, 4096)
"""How many records before a message its input is looked for, one after another: nearly always it is the record before;
an input that had to wait precedes the records of the run that it waited for."""


async def image_at(journal: Journal, session: str, seq: int, index: int) -> Image:
    """Return an image of the message that the event `seq` shows, with its data; `index` counts from 0.

    Raises:
        CommandError: there is no such image.
        StorageError: the journal cannot be read.
    """
    number = await journal.history.record_at(session, seq)
    if number is not None:
        (stored,) = await journal.history.entries(session, number - 1, 0)
        shown = events.DECODER.decode(stored.events.splitlines()[seq - stored.first_seq])
        images = [block for block in await _content(journal, session, stored, shown) if isinstance(block, Image)]
        if 0 <= index < len(images):
            return images[index]
    raise CommandError(Code.NOT_FOUND, f"the message {seq} has no image {index}")


async def _content(journal: Journal, session: str, stored: Stored, shown: events.Event) -> Sequence[Block | Text]:
    match shown, stored.record:
        case events.UserMessage(input=str(key)), records.Input(id=own, content=content) if own == key:
            return content
        case events.UserMessage(input=str(key)), _:
            return await _input(journal, session, stored.number, key)
        case events.ToolResultEvent(id=call), records.CallResult(call_id=own, content=result) if own == call:
            return result
        case _:
            return ()


async def _input(journal: Journal, session: str, number: int, key: str) -> Sequence[Block]:
    """Return the content of the input `key`, whose record is before the record `number`."""
    end = number
    for span in SPANS:
        start = max(0, number - span)
        async for stored in _between(journal, session, start, end):
            if isinstance(stored.record, records.Input) and stored.record.id == key:
                return stored.record.content
        if start == 0:
            break
        end = start
    return ()


async def _between(journal: Journal, session: str, start: int, end: int) -> AsyncIterator[Stored]:
    """Yield the records after number `start`, at least up to `end`, a page at a time."""
    while start < end:
        page = await journal.history.entries(session, start, PAGE_BYTES)
        for stored in page:
            yield stored
        start = page[-1].number if page else end
