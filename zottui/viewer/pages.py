"""Loads a session's messages from the daemon in pages, in both directions."""

from collections.abc import Sequence

from zotd.wire import api
from zotd.wire.content import Message
from zottui.ui_context import CommandSender
from zottui.viewer.loaded import Loaded, seq_of

PAGE = 200
"""Messages in a page: several screens; decoding them takes 5 ms."""

SPAN = 150
"""Events that the first request for newer messages spans. Less than `PAGE`, since N events hold at most N messages."""


class Pages:
    """Loads the messages of one session on its current branch, or as the conversation was at the message `at`."""

    def __init__(self, ui: CommandSender, session: str, at: int | None = None) -> None:
        """`at`: a message that may be on a branch that a rewind has left."""
        self.session = session
        self.at = at
        self._ui = ui

    async def before(self, seq: int | None, limit: int = PAGE) -> api.HistoryPage:
        """Return the newest messages below `seq`, or of all, oldest first: at least one if any exist."""
        params = api.History(session=self.session, before=seq, limit=limit, at=self.at)
        return await self._ui.ask(params, api.HistoryPage)

    async def after(self, seq: int) -> Sequence[Message]:
        """Return the messages that directly follow `seq`, oldest first; empty if there are none.

        The daemon only pages backwards, so this requests the page that ends `span` events above `seq`. If messages are
        dense or long, that page does not reach back to `seq`, and the span is halved. If the span contains no message,
        because its events are others or a rewind has left them, the span is doubled. So there is never a gap.
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
            # Complete if the page also reaches messages up to `seq`, or begins directly after it.
            elif len(fresh) < len(page.messages) or not page.has_more or seq_of(fresh[0]) == seq + 1:
                return fresh
            else:
                span = max(span // 2, 1)

    async def around(self, seq: int) -> Loaded:
        """Return the page that ends with a message, and the page after it."""
        page = await self.before(seq + 1)
        newer = await self.after(seq)
        return Loaded([*page.messages, *newer], has_older=page.has_more, has_newer=bool(newer))

    async def newest(self) -> int:
        """Return the `seq` of the newest message; 0 if there is none."""
        page = await self.before(None, 1)
        return seq_of(page.messages[-1]) if page.messages else 0
