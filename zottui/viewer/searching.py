"""Looking for words, beyond what is loaded too."""

import asyncio
from collections.abc import Iterable

from zotd.wire.content import Message
from zottui.viewer.finding import Query, hits
from zottui.viewer.laying import ScreenRow
from zottui.viewer.loaded import Loaded, seq_of
from zottui.viewer.pages import Pages
from zottui.viewer.reader import Reader
from zottui.viewer.scrolling import RowPosition

BREATH = 20
"""Messages that are looked at before keys are: 10 ms, when all of them have to be laid out."""

Found = tuple[Loaded, int, ScreenRow]
"""Where a hit is: what has to be loaded, the message, and the row."""


class TextSearch:
    """One way from hit to hit."""

    def __init__(self, reader: Reader, pages: Pages, query: Query) -> None:
        """Begins at the cursor of the reader."""
        self.query = query
        self.looked_at = 0
        """Messages, so far."""
        self._reader = reader
        self._pages = pages

    def has_more(self, *, down: bool) -> bool:
        """Whether there may be hits beyond what is loaded."""
        return self._reader.loaded.has_newer if down else self._reader.loaded.has_older

    def near(self, *, down: bool, includes_cursor: bool = False) -> bool:
        """Put the cursor on the next row with a hit that is loaded, or on the one before; False: there is none.

        `includes_cursor`: the row under the cursor may be it. At once, so that the next key meets the cursor there.
        """
        here = self._reader.scroll.here
        if here is None:
            return False
        loaded = self._reader.loaded
        start = loaded.index(here.seq)
        for index in range(start, len(loaded)) if down else range(start, -1, -1):
            if not self._may_be_in(loaded.with_results(index)):
                continue
            rows = hits(self.query, self._reader.laying.laid(loaded, index), self._reader.laying)
            if index == start:
                rows = _from(rows, here, down=down, includes_cursor=includes_cursor)
            if rows:
                self._reader.go(loaded.seq(index), rows[0 if down else -1])
                return True
        return False

    async def go(self, *, down: bool) -> bool:
        """The same in the whole session. Raises `ClientError`; cancelled, it leaves the cursor where it is."""
        self.looked_at = 0
        if self.near(down=down):
            return True
        found = await self._beyond(self._reader.loaded, down=down)
        if found is None:
            return False
        loaded, seq, row = found
        if not self._reader.loaded.has(seq):
            self._reader.loaded = loaded
        self._reader.go(seq, row)
        return True

    async def _beyond(self, loaded: Loaded, *, down: bool) -> Found | None:
        """The nearest hit in the pages behind that, or before it."""
        edge, has_more = (loaded.last, loaded.has_newer) if down else (loaded.first, loaded.has_older)
        while has_more:
            if down:
                messages = await self._pages.after(edge)
                has_more = bool(messages)
            else:
                page = await self._pages.before(edge)
                messages, has_more = page.messages, page.has_more and bool(page.messages)
            for message in messages if down else reversed(messages):
                edge = seq_of(message)
                await self._breathe()
                found = await self._confirmed(message, down=down) if self._may_be_in([message]) else None
                if found:
                    return found
        return None

    async def _confirmed(self, message: Message, *, down: bool) -> Found | None:
        """The hit that people see, if they see one: the words may be far from each other."""
        loaded = await self._pages.around(seq_of(message))
        index = loaded.caller(loaded.index(seq_of(message)))
        if index < 0:
            return None
        rows = hits(self.query, self._reader.laying.laid(loaded, index), self._reader.laying)
        return (loaded, loaded.seq(index), rows[0 if down else -1]) if rows else None

    def _may_be_in(self, messages: Iterable[Message]) -> bool:
        return any(map(self.query.may_be_in, messages))

    async def _breathe(self) -> None:
        self.looked_at += 1
        if not self.looked_at % BREATH:
            await asyncio.sleep(0)


def _from(rows: list[ScreenRow], here: RowPosition, *, down: bool, includes_cursor: bool) -> list[ScreenRow]:
    """Of the rows of the message under the cursor those that lie in the direction, the nearest at its end of the list."""
    cursor = (here.block, here.line, here.offset)
    beyond = [row for row in rows if (row.order > cursor if down else row.order < cursor)]
    return [row for row in rows if includes_cursor and row.order == cursor] or beyond
