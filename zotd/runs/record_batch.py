"""What a run has to record, until it is committed: in one transaction, so that what belongs together is stored together.

    add, bill, close ... ──> commit, or commit_soon ──> shown

When that is due is decided by the runner (`docs/durability.md`). A process that ends before it loses what is here.
"""

from collections.abc import Callable, Sequence
from functools import partial

from zotd.clock import rfc3339
from zotd.contributions.guards import rewritten
from zotd.core import records, turn
from zotd.ledger.ledger import Ledger, Shown
from zotd.runs.context import RunStart
from zotd.wire import events
from zotd.wire.content import Block, Tokens, visible


class RecordBatch:
    """The records of one run that are not committed yet, in order."""

    def __init__(self, ledger: Ledger, run: str, start: RunStart) -> None:
        """`start` says what is called at the first commit and at the last one, before any event is shown."""
        self.context: int | None = None
        """Tokens of the reply in this batch with its request; None: there is no reply, or the vendor sent no figures."""
        self._ledger = ledger
        self._run = run
        self._accepted, self._done_shown = start.accepted, start.done_shown
        self._items: list[Shown] = []
        self._usage: Tokens | None = None
        self._state = "running"
        self._is_last = False

    def add(self, *items: Shown) -> None:
        """Add records, and the events to send when they are committed."""
        self._items += items

    def bill(self, row: records.UsageRow, *, replied: bool) -> None:
        """The usage of one request. `replied`: something has come of it, so clients are told; else it only counts."""
        shown: list[events.Event] = []
        tokens = row.tokens
        if tokens is not None:
            self._usage = (self._usage or Tokens()) + tokens
        if replied and tokens is not None:
            self.context = tokens.input + tokens.cache_read + tokens.cache_write + tokens.output
            total = self._ledger.row.usage + (self._usage or Tokens())
            shown.append(
                events.Usage(
                    tokens.input,
                    tokens.output,
                    tokens.cache_read,
                    tokens.cache_write,
                    tokens.cost_usd,
                    total,
                    row.reasoning,
                )
            )
        self.add(Shown(row, shown))

    def compact(self, item: Shown) -> None:
        """Add the summary. How much the next request reads is not known before its reply."""
        self.add(item)
        self.context = 0

    def reply(
        self, step: int, content: list[Block], stop: str, after: Sequence[events.Event], *, seen: str | None = None
    ) -> None:
        """A reply, with its message and then the events `after`. `seen`: what people get for its text; None: the text."""
        record = records.Reply(time=rfc3339(), run=self._run, step=step, content=content, stop=stop)
        blocks = visible(content) if seen is None else rewritten(visible(content), seen)
        shown: list[events.Event] = [events.AssistantMessage(blocks, record.time)] if blocks else []
        self.add(Shown(record, [*shown, *after]))

    def close(self, end: turn.End) -> None:
        """The end of the run: shown with the last record, or by one of its own when something went wrong."""
        shown: list[events.Event] = []
        if end.open_step:
            shown.append(events.TurnEnd(end.stop, end.error))
        if end.error is not None:
            shown.append(events.Error(end.error))
        shown.append(events.Done(run=self._run))
        if end.stop == "end_turn" and self._items:
            last = self._items[-1]
            self._items[-1] = Shown(last.record, [*last.shows, *shown])
        else:
            note = records.Note(time=rfc3339(), level="error" if end.error else "info", text=end.error or end.stop)
            self.add(Shown(note, shown))
        self._state = self._ledger.transcript.rest
        self._is_last = True

    async def commit(self, *, durable: bool = False) -> None:
        """Store all of it and wait until it is shown; `durable`: and until the disk has it. Afterwards it is empty."""
        if not self._items and self._ledger.settled.is_set():
            return
        items, usage, context = self._take()
        accepted, self._accepted = self._accepted, None
        await self._ledger.write(
            items,
            durable=durable or accepted is not None,
            usage=usage,
            context=context,
            accepted=partial(self._committed, accepted),
            state=self._state,
        )

    async def commit_soon(self, then: Callable[[], None] | None = None) -> None:
        """Have it stored and shown with the run's next commit, or a moment later; `then` is called after that.

        It waits only for the first commit of the run, whose sender waits for an answer.
        """
        if self._accepted is not None:
            await self.commit()
            if then is not None:
                then()
        elif self._items:
            items, usage, context = self._take()
            self._ledger.defer(items, usage=usage, context=context, then=then, state=self._state)

    def _take(self) -> tuple[list[Shown], Tokens | None, int | None]:
        taken = self._items, self._usage, self.context
        self._items, self._usage, self.context = [], None, None
        return taken

    def _committed(self, accepted: Callable[[], None] | None) -> None:
        if self._is_last:
            self._done_shown()
        if accepted is not None:
            accepted()
