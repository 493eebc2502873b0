"""Looking for words, beyond what is loaded too."""

import asyncio
from collections.abc import Iterable

from zotd.wire.content import Message
from zottui.viewer.finding import Query, hits
from zottui.viewer.laying import Row
from zottui.viewer.loaded import Loaded, seq_of
from zottui.viewer.pages import Pages
from zottui.viewer.reader import Reader
from zottui.viewer.scrolling import Place

BREATH = 20
"""Messages that are looked at before keys are: 10 ms, when all of them have to be laid out."""

Found = tuple[Loaded, int, Row]
"""Where a hit is: what has to be loaded, the message, and the row."""


class Search:
    """One way from hit to hit."""

    def __init__(self, reader: Reader, pages: Pages, query: Query) -> None:
        """Begins at the cursor of the reader."""
        self.query = query
        self.looked_at = 0
        """Messages, so far."""
        self._reader = reader
        self._pages = pages

    async def go(self, *, down: bool, includes_cursor: bool = False) -> bool:
        """Put the cursor on the next row with a hit, or on the one before; False: there is none.

        `includes_cursor`: the row under the cursor may be it. Raises `ClientError`. Cancelled, it leaves the cursor where
        it is.
        """
        self.looked_at = 0
        loaded = self._reader.loaded.copy()  # the reader's may change while this looks at it
        cursor = self._reader.scroll.here
        if cursor is None:
            return False
        found = await self._within(loaded, cursor, down=down, includes_cursor=includes_cursor)
        found = found or await self._beyond(loaded, down=down)
        if found is None:
            return False
        there, seq, row = found
        if not self._reader.loaded.has(seq):
            self._reader.loaded = there
        self._reader.go(seq, row)
        return True

    async def _within(self, loaded: Loaded, cursor: Place, *, down: bool, includes_cursor: bool) -> Found | None:
        """The nearest hit in what is loaded."""
        start = loaded.index(cursor.seq)
        for index in range(start, len(loaded)) if down else range(start, -1, -1):
            await self._breathe()
            if not self._may_be_in(loaded.with_results(index)):
                continue
            rows = hits(self.query, self._reader.laying.laid(loaded, index), self._reader.laying)
            if index == start:
                here = (cursor.block, cursor.line, cursor.offset)
                beyond = (row for row in rows if (row.order > here if down else row.order < here))
                rows = [row for row in rows if includes_cursor and row.order == here] or list(beyond)
            if rows:
                return loaded, loaded.seq(index), rows[0 if down else -1]
        return None

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
