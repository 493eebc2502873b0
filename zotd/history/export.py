"""A session as text, a page at a time; it may run meanwhile.

A page is a number of whole records, or a piece of a record that is longer than a page. Where the next one begins is a
number, too: that of the last record before it, and how many pieces of the next one are behind it already.
"""

from zotd.core import markdown
from zotd.core.lineage import holds
from zotd.core.ports import Journal, SessionRow, Stored
from zotd.history import jsonl
from zotd.wire import events
from zotd.wire.errors import Code, CommandError

FORMATS = ("jsonl", "markdown")

PAGE_BYTES = 1024 * 1024
"""Size of the text in a page. In a frame, which may have 4 MiB, it can grow to twice that."""

PIECES = 1 << 16
"""More than a record can have: SQLite holds none of 64 GiB."""


async def page(journal: Journal, row: SessionRow, form: str, after: int) -> tuple[str, int | None]:
    """Text from where the page before ended (0: from the beginning), and where this one ends; None: at the end.

    Raises:
        CommandError: there is no such format.
        StorageError: the journal cannot be read.
    """
    if form not in FORMATS:
        known = " and ".join(FORMATS)
        raise CommandError(Code.BAD_REQUEST, f'unknown format "{form}"; there are {known}')
    behind, piece = divmod(max(after, 0), PIECES)
    found = await journal.history.entries(row.id, behind, PAGE_BYTES)
    is_last = not found or found[-1].number >= row.records
    texts = [_text(row, form, stored) for stored in found]
    last = found[-1].number if found else behind
    if texts and len(texts[0]) > PAGE_BYTES:
        start, stop = (_boundary(texts[0], place) for place in (piece, piece + 1))
        if stop < len(texts[0]):
            return texts[0][start:stop].decode(), behind * PIECES + piece + 1
        texts, last, is_last = [texts[0][start:]], behind + 1, is_last and len(found) == 1
    if is_last and form == "jsonl":
        texts.append(jsonl.end(last))
    return b"".join(texts).decode(), None if is_last else last * PIECES


def _text(row: SessionRow, form: str, stored: Stored) -> bytes:
    if form == "jsonl":
        return (jsonl.header(row) if stored.number == 1 else b"") + jsonl.record(stored)
    if holds(row.abandoned, stored.first_seq):
        return b""  # it is not part of the conversation any more
    return markdown.render(events.DECODER.decode(line) for line in stored.events.splitlines()).encode()


def _boundary(text: bytes, piece: int) -> int:
    """Where a piece of the text begins: between two characters."""
    place = min(piece * PAGE_BYTES, len(text))
    while 0 < place < len(text) and text[place] & 0xC0 == 0x80:
        place -= 1
    return place
