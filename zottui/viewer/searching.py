"""Searches a session, also beyond the loaded messages."""

import asyncio
from collections.abc import Iterable

from zotd.wire.content import Message
from zottui.viewer.finding import Query, hits
from zottui.viewer.layout import ScreenRow
from zottui.viewer.loaded import Loaded, seq_of
from zottui.viewer.pages import Pages
from zottui.viewer.reader import Reader
from zottui.viewer.scrolling import RowPosition

BREATH = 20
"""Messages to examine before yielding to the event loop: at most 10 ms, if all of them have to be laid out."""

Found = tuple[Loaded, int, ScreenRow]
"""A match: the messages to load, the message's seq, and the row."""


class TextSearch:
    """Moves the cursor from match to match."""

    def __init__(self, reader: Reader, pages: Pages, query: Query) -> None:
        """Begin at the reader's cursor."""
        self.query = query
        self.looked_at = 0
        """Number of messages examined so far, for the last line."""
        self._reader = reader
        self._pages = pages

    def has_more(self, *, down: bool) -> bool:
        """Return whether there are messages to search beyond the loaded ones."""
        return self._reader.loaded.has_newer if down else self._reader.loaded.has_older

    def near(self, *, down: bool, includes_cursor: bool = False) -> bool:
        """Go to the next or previous match among the loaded messages; False if there is none.

        With `includes_cursor`, the row under the cursor counts. Synchronous, so that the next key starts from the match.
        """
        here = self._reader.scroll.here
        if here is None:
            return False
        loaded = self._reader.loaded
        start = loaded.index(here.seq)
        for index in range(start, len(loaded)) if down else range(start, -1, -1):
            if not self._may_be_in(loaded.with_results(index)):
                continue
            rows = hits(self.query, self._reader.layout.laid(loaded, index), self._reader.layout)
            if index == start:
                rows = _from(rows, here, down=down, includes_cursor=includes_cursor)
            if rows:
                self._reader.go(loaded.seq(index), rows[0 if down else -1])
                return True
        return False

    async def go(self, *, down: bool) -> bool:
        """Go to the next or previous match in the whole session. Raises `ClientError`; if cancelled, the cursor stays."""
        self.looked_at = 0
        if self.near(down=down):
            return True
        found = await self._beyond(self._reader.loaded, down=down)
        if found is None:
            return False
        loaded, seq, row = found
        if not self._reader.loaded.has(seq):
            self._reader.show(loaded)
        self._reader.go(seq, row)
        return True

    async def _beyond(self, loaded: Loaded, *, down: bool) -> Found | None:
        """Return the nearest match in the pages after the loaded messages, or before them."""
        edge, has_more = (loaded.last, loaded.has_newer) if down else (loaded.first, loaded.has_older)
        while has_more:
            if down:
                messages = await self._pages.after(edge)
                has_more = bool(messages)
            else:
                page = await self._pages.before(edge)
                messages, has_more = page.messages, page.has_more and bool(page.messages)
            for message in messages if down else reversed(messages):  # the nearest message first
                edge = seq_of(message)
                await self._breathe()
                found = await self._confirmed(message, down=down) if self._may_be_in([message]) else None
                if found:
                    return found
        return None

    async def _confirmed(self, message: Message, *, down: bool) -> Found | None:
        """Lay out a candidate message and return its match; None if the words do not occur as one visible text."""
        loaded = await self._pages.around(seq_of(message))
        index = loaded.caller(loaded.index(seq_of(message)))
        if index < 0:
            return None
        rows = hits(self.query, self._reader.layout.laid(loaded, index), self._reader.layout)
        return (loaded, loaded.seq(index), rows[0 if down else -1]) if rows else None

    def _may_be_in(self, messages: Iterable[Message]) -> bool:
        return any(map(self.query.may_be_in, messages))

    async def _breathe(self) -> None:
        self.looked_at += 1
        if not self.looked_at % BREATH:
            await asyncio.sleep(0)


def _from(rows: list[ScreenRow], here: RowPosition, *, down: bool, includes_cursor: bool) -> list[ScreenRow]:
    """Filter the matches in the cursor's message to those in the search direction."""
    cursor = (here.block, here.line, here.offset)
    beyond = [row for row in rows if (row.order > cursor if down else row.order < cursor)]
    return [row for row in rows if includes_cursor and row.order == cursor] or beyond
