"""Moves the viewer to parts of the conversation that may have to be loaded first."""

from collections.abc import Sequence
from itertools import islice

from zotd.wire.content import Message
from zottui.transcript import is_prompt
from zottui.ui_context import UiContext
from zottui.viewer.loaded import Loaded, seq_of
from zottui.viewer.pages import Pages
from zottui.viewer.reader import Reader
from zottui.viewer.scrolling import RowPosition
from zottui.viewer.turns import Numbers, turns


class Navigator:
    """Moves a reader through a session and loads pages for it.

    The async methods ask the daemon and raise `ClientError`. They may be cancelled, and several may run at the same time:
    then the last one to finish determines the position.
    """

    def __init__(self, reader: Reader, pages: Pages) -> None:
        """Load nothing before the first call."""
        self.pages = pages
        self.numbers = Numbers()
        self._reader = reader
        self._newest = 0

    @property
    def percent(self) -> int:
        """Position of the cursor in percent of the newest known `seq`; 100 only at the very end."""
        seq = self._reader.seq
        return 100 if self._reader.is_live or not self._newest else min(100 * seq // self._newest, 99)

    async def to_newest(self) -> None:
        """Go to the end of the conversation."""
        page = await self.pages.before(None)
        self._reader.show(Loaded(page.messages, has_older=page.has_more))
        self._know(page.messages)
        self._reader.go_to_end()

    async def to_oldest(self) -> None:
        """Go to the beginning of the conversation."""
        if self._reader.loaded.has_older:
            self._reader.show(Loaded(await self.pages.after(0), has_newer=True))
        self._reader.scroll.to(RowPosition(self._reader.loaded.first), 0)

    async def to_message(self, seq: int) -> bool:
        """Go to a message; a result's position is that of its call. Return False if the conversation does not contain it."""
        loaded = self._reader.loaded
        if not loaded.has(seq):
            loaded = await self.pages.around(seq)
            self._know(loaded.messages)
        at = loaded.caller(loaded.index(seq))
        if not loaded.has(seq) or at < 0:
            return False
        self._reader.show(loaded)
        self._reader.scroll.to(RowPosition(loaded.seq(at)), 0)
        return True

    def to_near_prompt(self, *, down: bool) -> bool:
        """Go to the next or previous prompt among the loaded messages; False if there is none."""
        here = self._reader.scroll.here or RowPosition(0)
        prompts = [seq_of(message) for message in self._reader.loaded.messages if is_prompt(message)]
        if down:
            seq = next((seq for seq in prompts if seq > here.seq), None)
        else:
            seq = next((seq for seq in reversed(prompts) if RowPosition(seq) < here), None)
        if seq is not None:
            self._reader.scroll.to(RowPosition(seq), 0)
        return seq is not None

    async def to_prompt(self, *, down: bool) -> bool:
        """Go to the next or previous prompt, loading pages as needed; False if there is none."""
        if self.numbers.is_complete:
            seq = self.numbers.beyond(self._reader.seq, down=down)
            return seq is not None and await self.to_message(seq)
        while not self.to_near_prompt(down=down):
            loaded = self._reader.loaded
            if not (loaded.has_newer if down else loaded.has_older):
                return False
            if down:
                await self.load_newer()
            else:
                await self.load_older()
        return True

    async def to_turn(self, number: int) -> bool:
        """Go to the prompt with a number, once prompts are counted; False if there is none."""
        seq = self.numbers.seq(number)
        return seq is not None and await self.to_message(seq)

    def to_call(self, back: int) -> bool:
        """Go to the last call with a result, or `back` calls before it, and expand it; False if it is not loaded."""
        place = next(islice(self._reader.calls(), back, None), None)
        if place is None:
            return False
        self._reader.scroll.to(place, 0)
        return self._reader.toggle()

    async def count(self, ui: UiContext) -> None:
        """Count the prompts of the whole session and note their positions."""
        found = [turn.seq async for turn in turns(ui, self.pages.session, self.pages.at)]
        self.numbers.complete(found)

    # --- loading ------------------------------------------------------------------------------------------------------

    async def load_more(self) -> None:
        """Load the pages that are about to scroll into view."""
        if self._reader.wants_older:
            await self.load_older()
        if self._reader.wants_newer:
            await self.load_newer()

    async def load_news(self) -> None:
        """Load messages that were added meanwhile; a cursor at the end stays at the end."""
        if self._reader.loaded.has_newer:
            return
        is_live = self._reader.is_live
        while await self.load_newer() and is_live:
            self._reader.go_to_end()

    async def load_older(self) -> None:
        """Load the page before the loaded messages."""
        loaded = self._reader.loaded
        before = loaded.first
        page = await self.pages.before(before)
        # `before` tells `add_older` whether another load has changed the beginning meanwhile.
        loaded.add_older(page.messages, before, has_older=page.has_more, near=self._reader.scroll.place.seq)

    async def load_newer(self) -> bool:
        """Load the page after the loaded messages; False if there is none."""
        loaded = self._reader.loaded
        after = loaded.last
        messages = await self.pages.after(after)
        loaded.add_newer(messages, after, has_newer=bool(messages), near=self._reader.scroll.place.seq)
        self._know(messages)
        return bool(messages)

    def _know(self, messages: Sequence[Message]) -> None:
        for message in messages:
            self._newest = max(self._newest, seq_of(message))
            if is_prompt(message):
                self.numbers.add(seq_of(message))
