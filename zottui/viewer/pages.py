"""Messages of a session, asked of the daemon a page at a time, in both directions."""

from collections.abc import Sequence

from zotd.wire import api
from zotd.wire.content import Message
from zottui.ui_context import UiContext
from zottui.viewer.loaded import Loaded, seq_of

PAGE = 200
"""Messages asked for at a time: several screens, and 5 ms to take apart."""

SPAN = 150
"""Events looked at for newer messages at first. Less than `PAGE`: so many events hold at most so many messages."""


class Pages:
    """The messages of one session, as its conversation goes on, or as it was at the message `at`."""

    def __init__(self, desk: UiContext, session: str, at: int | None = None) -> None:
        """`at`: a message that the conversation may have left behind by a rewind."""
        self.session = session
        self.at = at
        self._desk = desk

    async def before(self, seq: int | None, limit: int = PAGE) -> api.HistoryPage:
        """The newest messages below `seq`, or of all, oldest first: at least one, if there is one."""
        params = api.History(session=self.session, before=seq, limit=limit, at=self.at)
        return await self._desk.ask(params, api.HistoryPage)

    async def after(self, seq: int) -> Sequence[Message]:
        """The oldest messages above `seq`, oldest first, without a gap; none: there are none.

        The daemon only pages back, so this asks for the page that ends a little above. That is more than a page when messages
        are dense or long, and nothing where events are no messages, or were left behind by a rewind: then the next stretch
        is half as long, or twice.
        """
        span = SPAN
        newest: int | None = None
        while True:
            page = await self.before(seq + 1 + span)
            fresh = [message for message in page.messages if seq_of(message) > seq]
            if not fresh:
                if newest is None:
                    newest = await self.newest()
                seq, span = seq + span, span * 2
                if seq >= newest:
                    return []
            elif len(fresh) < len(page.messages) or not page.has_more or seq_of(fresh[0]) == seq + 1:
                return fresh
            else:
                span = max(span // 2, 1)

    async def around(self, seq: int) -> Loaded:
        """A page up to a message, and one behind it."""
        page = await self.before(seq + 1)
        newer = await self.after(seq)
        return Loaded([*page.messages, *newer], has_older=page.has_more, has_newer=bool(newer))

    async def newest(self) -> int:
        """The `seq` of the newest message; 0: there is none."""
        page = await self.before(None, 1)
        return seq_of(page.messages[-1]) if page.messages else 0
