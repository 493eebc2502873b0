"""Follows one session while a sender on a channel waits for an answer from it."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from zotd.channels.answers import Answers, ChannelReply
from zotd.channels.doings import Doings
from zotd.sessions.session import Session
from zotd.wire import events

CHUNK_BYTES = 1024 * 1024
"""How much of the journal is read at once: the events of a few hundred steps."""


Question = events.ApprovalRequested | events.ApprovalResolved
"""An approval question about a call, or its end."""


class ChannelSubscriber:
    """A subscriber of a session's ledger (`ledger.ledger.Subscriber`)."""

    def __init__(
        self,
        session: Session,
        told: Callable[[Session, ChannelReply], None],
        asked: Callable[[Session, Question], None] = lambda _session, _event: None,
        does: Callable[[Session, str, str], None] = lambda _session, _input, _text: None,
    ) -> None:
        """Prepare to follow `session`. The callbacks return at once and never raise.

        Args:
            session: the session.
            told: called with each answer, also to inputs of other clients.
            asked: called with each question about a call and with its end.
            does: called with an input and a description of what its run is doing.
        """
        self._does = does
        self._doings = Doings()
        self.session = session
        self._told = told
        self._asked = asked
        self._answers = Answers()

    def start(self) -> None:
        """Follow the session from now on."""
        self.session.ledger.subscribe(self)

    def stop(self) -> None:
        """Stop following the session."""
        self.session.ledger.unsubscribe(self)

    async def catch_up(self, after: int) -> None:
        """Process the events after seq `after` from the journal, then follow: none is missed or repeated."""
        ledger = self.session.ledger
        while after < ledger.shown_seq:
            after, data = await ledger.journal.events_after(self.session.id, after, CHUNK_BYTES)
            self._feed(list(_decoded(data)))
        self.start()  # in the same tick as the last comparison with `shown_seq`, so no commit can come in between

    def committed(self, shown: Sequence[events.Event], data: bytes, last_seq: int) -> None:
        """Process committed events."""
        del data, last_seq
        self._follow(shown)
        self._feed(shown)

    def early(self, shown: events.Event, data: bytes, seq: int) -> bool:
        """Process the event, which never contains an answer."""
        del data, seq
        self._follow([shown])
        return True

    def live(self, shown: Sequence[events.Event], data: bytes) -> None:
        """Process live events, which never contain an answer; questions of subagents are among them."""
        del data
        self._follow(shown)
        for event in shown:
            if isinstance(event, Question):
                self._asked(self.session, event)

    def _follow(self, shown: Sequence[events.Event]) -> None:
        """Report current activity. Events from before the start of following are not reported."""
        for event in shown:
            text = self._doings.take(event)
            if text is not None and self._doings.input is not None:
                self._does(self.session, self._doings.input, text)

    def _feed(self, shown: Sequence[events.Event]) -> None:
        for event in shown:
            if isinstance(event, Question):
                self._asked(self.session, event)
        for answer in self._answers.feed(shown):
            self._told(self.session, answer)


def _decoded(data: bytes) -> Iterator[events.Event]:
    for line in data.splitlines():
        try:
            yield events.DECODER.decode(line)
        except msgspec.ValidationError:
            continue  # an event of a newer zotd
