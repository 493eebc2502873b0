"""A conversation and somebody who reads it: what is loaded, how it looks, and where the cursor is.

Nothing here knows of a terminal. What takes time is `async`; whoever calls it does one such thing at a time, but may move
the cursor meanwhile.
"""

import asyncio
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from zotd.wire.content import Message
from zottui.blocks import Block, ToolRan
from zottui.theme import Theme
from zottui.viewer.finding import Query, hits
from zottui.viewer.laying import Laid, Laying, Row
from zottui.viewer.loaded import NEAR, Loaded, calls_of
from zottui.viewer.pages import Pages, seq_of
from zottui.viewer.scrolling import At, Place, Scroll
from zottui.viewer.turns import Numbers, is_prompt

BREATH = 20
"""Messages that are searched before keys are looked at: 10 ms when they have to be laid out."""


@dataclass(frozen=True, slots=True)
class Shown:
    """A row of the screen."""

    row: Row
    seq: int
    is_cursor: bool
    is_selected: bool
    """It belongs to the block under the cursor."""


class _Text:
    """What is loaded, as rows."""

    def __init__(self, loaded: Loaded, laying: Laying) -> None:
        self.loaded = loaded
        self.laying = laying

    def parts(self) -> int:
        return len(self.loaded)

    def rows(self, part: int) -> int:
        return len(self.laid(part).rows)

    def place(self, at: At) -> Place:
        return Place(seq_of(self.loaded.messages[at.part]), *self.laid(at.part).rows[at.row].order)

    def find(self, place: Place) -> At:
        part = self.loaded.index(place.seq)
        if part >= len(self.loaded) or seq_of(self.loaded.messages[part]) != place.seq:
            return At(part, 0)
        wanted = (place.block, place.line, place.offset)
        return At(part, max(bisect_right(self.laid(part).rows, wanted, key=lambda row: row.order) - 1, 0))

    def laid(self, part: int) -> Laid:
        return self.laying.laid(self.loaded, part)


class Reader:
    """One look at one session."""

    def __init__(self, pages: Pages, theme: Theme, name: str = "") -> None:
        """Nothing is loaded yet. `name`: of the session."""
        self.pages = pages
        self.name = name
        self.numbers = Numbers()
        self.query: Query | None = None
        """What was looked for last; its hits are marked."""
        self.searched = 0
        """Messages that the search has gone through so far."""
        self.newest = 0
        """The `seq` of the newest message that is known."""
        self._text = _Text(Loaded(), Laying(theme))
        self.scroll = Scroll(self._text)

    @property
    def loaded(self) -> Loaded:
        """The messages in memory."""
        return self._text.loaded

    def resize(self, width: int, height: int) -> None:
        """The room for rows; the one under the cursor stays."""
        self._text.laying.width = max(width, 1)
        self.scroll.height = max(height, 1)

    def screen(self) -> Iterator[Shown]:
        """The rows to show."""
        cursor = self.scroll.at()
        selected = None if cursor is None else self._text.place(cursor)
        for at in self.scroll.shown():
            row, seq = self._text.laid(at.part).rows[at.row], seq_of(self.loaded.messages[at.part])
            is_selected = selected is not None and (seq, row.block) == (selected.seq, selected.block)
            yield Shown(row, seq, at == cursor, is_selected)

    def spans(self, shown: Shown) -> list[tuple[int, int]]:
        """Where in a row that is shown the hits are."""
        if self.query is None:
            return []
        laid = self._text.laid(self.loaded.index(shown.seq))
        start = shown.row.offset
        return [(a - start, b - start) for a, b in self.query.spans(laid.lines[shown.row.block][shown.row.line])]

    # --- where it is --------------------------------------------------------------------------------------------------

    @property
    def seq(self) -> int:
        """The message under the cursor; 0: there is none."""
        at = self.scroll.at()
        return 0 if at is None else seq_of(self.loaded.messages[at.part])

    @property
    def block(self) -> Block | None:
        """The one under the cursor."""
        at = self.scroll.at()
        if at is None:
            return None
        laid = self._text.laid(at.part)
        return laid.blocks[laid.rows[at.row].block]

    @property
    def is_live(self) -> bool:
        """Whether the cursor is at the end of all."""
        return not self.loaded.has_newer and self.scroll.is_at_end()

    @property
    def percent(self) -> int:
        """How far the cursor is, counted in messages."""
        return 100 if self.is_live or not self.newest else min(100 * self.seq // self.newest, 99)

    def rest(self) -> str:
        """The Markdown and the results of all that is loaded, for an editor."""
        return "\n\n".join(_words(message) for message in self.loaded.messages if _words(message)) + "\n"

    # --- calls --------------------------------------------------------------------------------------------------------

    def toggle(self) -> bool:
        """Show the call under the cursor whole, or as a card again; False: there is none.

        In one that was opened the cursor goes to the first hit.
        """
        at = self.scroll.at()
        if at is None or not isinstance(self.block, ToolRan):
            return False
        place = self._text.place(at)
        self._text.laying.toggle(place.seq, place.block)
        laid = self._text.laid(at.part)
        if self.query is not None and place.block in laid.expanded:
            found = (row for row in hits(self.query, laid, self._text.laying) if row.block == place.block)
            self._go(place.seq, next(found, None))
        return True

    def toggle_all(self) -> None:
        """Show all calls whole, or all as cards."""
        self._text.laying.toggle_all()

    # --- loading ------------------------------------------------------------------------------------------------------

    async def to_newest(self) -> None:
        """Go to the end of all."""
        if self.loaded.has_newer or not self.loaded.messages:
            page = await self.pages.before(None)
            self._replace(Loaded(page.messages, has_older=page.has_more))
        self._to_end()

    async def to_oldest(self) -> None:
        """Go to the beginning of all."""
        if self.loaded.has_older:
            self._replace(Loaded(await self.pages.after(0), has_newer=True))
        self.scroll.to(Place(self.loaded.first), 0)

    async def to_message(self, seq: int, above: int = 0) -> bool:
        """Go to a message, with so many rows above it; False: the conversation does not have it."""
        if not self._has(seq):
            loaded = await self._around(seq)
            if loaded.messages[loaded.index(seq) :][:1] == [] or seq_of(loaded.messages[loaded.index(seq)]) != seq:
                return False
            self._replace(loaded)
        self.scroll.to(Place(seq), above)
        return True

    async def to_prompt(self, *, down: bool) -> bool:
        """Go to the next prompt, or to the one before the cursor; False: there is none."""
        while (seq := self._prompt(down=down)) is None:
            if not (self.loaded.has_newer if down else self.loaded.has_older):
                return False
            await (self._load_newer() if down else self._load_older())
        return await self.to_message(seq)

    @property
    def wants_more(self) -> bool:
        """Whether what is loaded ends near what is shown."""
        at = self.loaded.index(self.scroll.place.seq)
        return (self.loaded.has_older and at < NEAR) or (self.loaded.has_newer and at >= len(self.loaded) - NEAR)

    async def load_more(self) -> None:
        """Load what comes next, on either side."""
        at = self.loaded.index(self.scroll.place.seq)
        if self.loaded.has_older and at < NEAR:
            await self._load_older()
        if self.loaded.has_newer and self.loaded.index(self.scroll.place.seq) >= len(self.loaded) - NEAR:
            await self._load_newer()

    async def load_news(self) -> None:
        """Load messages that were added since; a cursor at the end stays at the end."""
        if self.loaded.has_newer:
            return
        is_live = self.is_live
        await self._load_newer()
        if is_live:
            self._to_end()

    async def _load_older(self) -> None:
        before = self.loaded.first
        page = await self.pages.before(before)
        self.loaded.add_older(page.messages, before, has_older=page.has_more, near=self.scroll.place.seq)

    async def _load_newer(self) -> None:
        after = self.loaded.last
        messages = await self.pages.after(after)
        self.loaded.add_newer(messages, after, has_newer=bool(messages), near=self.scroll.place.seq)
        self._know(messages)

    async def _around(self, seq: int) -> Loaded:
        """Messages on both sides of one."""
        page = await self.pages.before(seq + 1)
        newer = await self.pages.after(seq)
        return Loaded([*page.messages, *newer], has_older=page.has_more, has_newer=bool(newer))
