"""The viewer without a terminal: keys in, text out."""

import asyncio
from contextlib import asynccontextmanager

from tests.zottui.fake_ui import shown
from tests.zottui.viewer.conversations import fake_ui
from zottui.viewer.viewing import Viewer
from zottui.viewer.visit import begun

TURNS = 1000
"""Of the loop: an answer takes one, and so do 20 messages that are searched."""


class Reading:
    """Somebody who looks through a conversation."""

    def __init__(self, place, visit, width, height):
        self.fake_ui = place
        self.visit = visit
        self.width, self.height = width, height
        self.left = asyncio.Event()
        self.viewer = Viewer(place, visit, leave=self.left.set, redraw=lambda: None)

    async def press(self, *keys):
        """Keys by name, or characters."""
        for key in keys:
            self.viewer.key("<any>" if len(key) == 1 else key, key)
        await self.settle()

    async def settle(self):
        """Until all that was begun is done."""
        for _ in range(TURNS):
            await asyncio.sleep(0)

    @property
    def rows(self):
        """What is shown of the conversation; before it `>` at the cursor and `|` beside its block."""
        rows, _ = self.viewer.rows(self.width, self.height)
        text = shown(rows, self.width, self.height).replace("▌", "|")
        return [line[:1] + line[2:] if line[:1] in "|>" else line[2:] for line in text.split("\n")]

    @property
    def text(self):
        return "\n".join(self.rows)

    @property
    def cursor(self):
        """The row under the cursor."""
        rows, cursor = self.viewer.rows(self.width, self.height)
        return "".join(text for _, text in rows[cursor][1:])

    @property
    def marked(self):
        """What is marked as a hit, row by row."""
        rows, _ = self.viewer.rows(self.width, self.height)
        return [text for row in rows for style, text in row if "selected" in style]

    @property
    def last_line(self):
        return shown([self.viewer.last_line(self.width)], self.width, 1)


@asynccontextmanager
async def reading(stored, *, width=80, height=12, answers=None, turn=None, session=None, seq=None, call=None, **state):
    async with fake_ui(stored, **state) as place:
        place.answers |= answers or {}
        visit = await begun(place, turn=turn, session=session, seq=seq, call=call)
        assert visit is not None
        one = Reading(place, visit, width, height)
        one.viewer.rows(width, height)
        async with asyncio.TaskGroup() as group:
            running = group.create_task(one.viewer.run(one.left.wait()))
            await one.settle()
            yield one
            one.left.set()
            await running
