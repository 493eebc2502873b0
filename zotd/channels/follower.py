"""Follows one session for as long as somebody on a channel waits for an answer of it."""

from collections.abc import Callable, Iterator, Sequence

import msgspec

from zotd.channels.answers import Answers, ChannelReply
from zotd.channels.doings import Doings
from zotd.sessions.session import Session
from zotd.wire import events

CHUNK_BYTES = 1024 * 1024
"""Of the journal's events, read at once: a run of a few hundred steps."""


Question = events.ApprovalRequested | events.ApprovalResolved
"""A question about a call, or its end."""


class ChannelSubscriber:
    """A subscriber of a session's ledger (`ledger.ledger.Subscriber`)."""

    def __init__(
        self,
        session: Session,
        told: Callable[[Session, ChannelReply], None],
        asked: Callable[[Session, Question], None] = lambda _session, _event: None,
        does: Callable[[Session, str, str], None] = lambda _session, _input, _text: None,
    ) -> None:
        """`told` is called with each answer, also to inputs of others; `asked` with each question about a call.

        `does` gets an input, and what its run does now. All return at once and never raise.
        """
        self._does = does
        self._doings = Doings()
        self.session = session
        self._told = told
        self._asked = asked
        self._answers = Answers()

    def start(self) -> None:
        """Follow from now on."""
        self.session.ledger.subscribe(self)

    def stop(self) -> None:
        """Follow no more."""
        self.session.ledger.unsubscribe(self)

    async def catch_up(self, after: int) -> None:
        """Take the events after `seq` from the journal, then follow: none is missed and none comes twice."""
        ledger = self.session.ledger
        while after < ledger.shown_seq:
            after, data = await ledger.journal.events_after(self.session.id, after, CHUNK_BYTES)
            self._feed(list(_decoded(data)))
        self.start()  # in the same tick as the last look at `shown_seq`

    def committed(self, shown: Sequence[events.Event], data: bytes, last_seq: int) -> None:
        """Events with `seq`."""
        del data, last_seq
        self._follow(shown)
        self._feed(shown)

    def live(self, shown: Sequence[events.Event], data: bytes) -> None:
        """Events without `seq`, which answer nothing."""
        del data
        self._follow(shown)

    def _follow(self, shown: Sequence[events.Event]) -> None:
        """What happens now; what happened before it was followed is not shown."""
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
            continue  # of a newer program
