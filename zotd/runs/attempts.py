"""The records of a run's model requests, and how inputs get into the transcript with them.

The first attempt carries the run's own input, the first of each later step those that join it (`when_busy: "steer"`):
an input stops waiting in the very commit that shows it to the model.
"""

from collections.abc import Sequence

from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.turn import Send
from zotd.ledger.ledger import Shown
from zotd.runs.billing import COMPACTION, RequestBilling
from zotd.runs.queue import Queue
from zotd.wire import events
from zotd.wire.content import Tokens, visible


class Attempts:
    """The attempts of one run."""

    def __init__(
        self,
        run: str,
        settings: records.Settings,
        queue: Queue,
        first: records.Input | None,
        *,
        billing: RequestBilling,
    ) -> None:
        """`first`: the run's own input; None: it goes on where another run was cut. `billing` is told what begins."""
        self._run = run
        self._settings = settings
        self._queue = queue
        self._first = first
        self._billing = billing

    def resumed(self) -> Shown:
        """The run begins where another one was cut; no model is asked by this."""
        return Shown(self._record(0, 0, resumes=True))

    def begin(self, send: Send) -> Shown:
        """A request is about to be sent; with the events that begin a step."""
        started, steered, shown = self._join() if send.number == 1 else (None, [], [])
        if send.number == 1:
            shown.append(events.TurnStart(send.step))
        record = self._record(send.step, send.number, started=started, steered=steered, estimate=self._billing.begin())
        return Shown(record, shown)

    def summary(self, step: int) -> Shown:
        """A summary is about to be asked for; what the run is about enters the transcript before that."""
        started, steered, shown = self._join()
        record = self._record(step, 0, started=started, steered=steered, estimate=self._billing.begin(COMPACTION))
        return Shown(record, shown)

    def answered(self, send: Send) -> Shown:
        """The provider has begun to answer."""
        record = self._record(send.step, send.number, answered=True, estimate=self._billing.estimate)
        return Shown(record, [events.AssistantStart()])

    def _join(self) -> tuple[str | None, list[str], list[events.Event]]:
        """The run's input, once, and those that join it: their names, and the events that show them."""
        first, self._first = self._first, None
        shown: list[events.Event] = [] if first is None else [*self._queue.started(first), self._message(first)]
        steered = self._queue.steering()
        shown += [self._message(joined) for joined in steered]
        if steered:  # behind them all: whoever misses an input in the queue may take the next event for its fate
            shown.append(events.QueueChanged(self._queue.items(), held=False))
        return None if first is None else first.id, [joined.id for joined in steered], shown

    def _message(self, first: records.Input) -> events.UserMessage:
        self._billing.expect(first.content)
        return events.UserMessage(
            visible(first.content), first.time, input=first.id, run=self._run, sender=first.sender or None
        )

    def _record(
        self,
        step: int,
        number: int,
        *,
        started: str | None = None,
        answered: bool = False,
        steered: Sequence[str] = (),
        resumes: bool = False,
        estimate: Tokens | None = None,
    ) -> records.Attempt:
        return records.Attempt(
            time=rfc3339(),
            run=self._run,
            step=step,
            number=number,
            provider=self._settings.provider,
            model=self._settings.model,
            input=started,
            answered=answered,
            steered=list(steered),
            resumes=resumes,
            estimate=estimate,
        )
