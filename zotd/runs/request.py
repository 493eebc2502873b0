"""The model requests of one run: on record, paid for, sent, and read.

    begin ──> attempt on record ──> guards ──> budget ──> request ──> 200 on record ──> reply, as far as it comes
                                                                  └─> guards about its text ──> bill

An input enters the transcript with an attempt: the run's own with the first, inputs that steer with the first of each
later step. So an input stops waiting in the very commit that shows it to the model.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from functools import partial

from msgspec.structs import replace

from zotd import ids
from zotd.clock import rfc3339
from zotd.contributions.guards import withheld
from zotd.contributions.toolbox import Toolbox
from zotd.core import records
from zotd.core.pacing import Pacing
from zotd.core.ports import ModelRequest, PartialText
from zotd.core.records import Opening, PrefixDigests
from zotd.core.reply import Assembler
from zotd.core.turn import Send
from zotd.exthost.guards import GuardRemark
from zotd.ledger.ledger import Ledger, Shown
from zotd.runs.context import RunContext
from zotd.runs.opening import made_by_a_person
from zotd.runs.queue import Queue
from zotd.runs.request_billing import COMPACTION, RequestBilling
from zotd.runs.request_guard import RequestGuard, SentRequest
from zotd.wire import events
from zotd.wire.api import Partial, ToolUse
from zotd.wire.content import Tokens, visible


class Attempts:
    """The attempts of one run."""

    def __init__(
        self,
        run: str,
        plan: RunContext,
        ledger: Ledger,
        queue: Queue,
        *,
        first: records.Input | None,
        billing: RequestBilling,
    ) -> None:
        """`first`: the run's own input; None: it goes on where another run was cut. `billing` is told what begins."""
        self._run = run
        self._plan = plan
        self._ledger = ledger
        self._queue = queue
        self._first = first
        self._billing = billing

    def resumed(self, continues: str | None) -> Shown:
        """The run begins where the run `continues` was cut; no model is asked by this."""
        return Shown(replace(self._record(0, 0, resumes=True), continues=continues))

    def begin(self, send: Send) -> Shown:
        """A request is about to be sent; with the events that begin a step."""
        started, steered, shown = self._join() if send.number == 1 else (None, [], [])
        if send.number == 1:
            shown.append(events.TurnStart(send.step))
        record = self._record(send.step, send.number, started=started, steered=steered, estimate=self._billing.begin())
        return Shown(record, shown)

    def summary(self, step: int, *, waits: bool = False) -> Shown:
        """A summary is about to be asked for; what the run is about enters the transcript before that.

        `waits`: it was asked for before, and nothing is sent now.
        """
        started, steered, shown = self._join()
        estimate = None if waits else self._billing.begin(COMPACTION)
        record = self._record(step, 0, started=started, steered=steered, estimate=estimate)
        return Shown(replace(record, waits=waits), shown)

    def answered(self, send: Send) -> Shown:
        """The provider has begun to answer."""
        record = self._record(send.step, send.number, answered=True, estimate=self._billing.estimate)
        return Shown(record, [events.AssistantStart()])

    def _join(self) -> tuple[str | None, list[str], list[events.Event]]:
        """The run's input, once, and those that join it: their names, and the events that show them."""
        first, self._first = self._first, None
        shown: list[events.Event] = [] if first is None else [*self._queue.started(first), self._message(first)]
        steered: list[str] = []
        for joined in self._queue.steering():
            steered.append(joined.id)
            shown.append(self._message(joined))
        if steered:  # behind them all: a client that misses an input in the queue takes the next event for its fate
            shown.append(events.QueueChanged(self._queue.items(), held=False))
        return None if first is None else first.id, steered, shown

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
        now = rfc3339(self._plan.clock())
        known = self._ledger.transcript.told_date or self._plan.told_date
        is_news = (started is not None or len(steered) > 0) and known != "" and not now.startswith(known)
        asked = self._plan.models.current
        return records.Attempt(
            time=now,
            run=self._run,
            step=step,
            number=number,
            provider=asked.provider,
            model=asked.name,
            input=started,
            answered=answered,
            steered=list(steered),
            date=now[: len(known)] if is_news else "",
            context=self._plan.input_context if started is not None else "",
            resumes=resumes,
            estimate=estimate,
        )


class RequestSender:
    """The model requests of one run, one after another."""

    def __init__(
        self,
        run: str,
        plan: RunContext,
        ledger: Ledger,
        billing: RequestBilling,
        *,
        opening: Opening | None,
        noted: Callable[[Sequence[GuardRemark]], None],
    ) -> None:
        """The requests of the run with this id. `billing` pays.

        `opening`: the call that the first step makes instead of a request. `noted` is told what guards did that a
        reader of the transcript should know.
        """
        self._plan = plan
        self._ledger = ledger
        self._billing = billing
        self._noted = noted
        self._run = run
        self._opening = opening
        # A journal in memory ends with the process, so there is no crash that the text could survive.
        self._pacing = None if ledger.journal.is_immediate else Pacing()
        self._reply: Assembler | None = None
        self._guard: RequestGuard | None = None
        """None: there was no guard so far."""
        self.holds_text = False
        """The reply's text is not shown before the guards have seen all of it."""

    async def ask(self, step: int, number: int, opened: Callable[[], Awaitable[None]]) -> SentRequest:
        """Send the request for this try of this step, and read the reply to its end; shows what arrives.

        `opened` is awaited when the provider has begun to answer. Safe to cancel: the text received so far stays.

        Raises:
            ModelError: the request failed, a guard did not want it sent, or a budget is used up.
        """
        if self._pacing is not None:
            self._pacing.begin()
        toolbox = self._plan.toolbox()
        self.holds_text = (hooks := self._plan.hooks()) is not None and hooks.holds_text
        if hooks is not None:
            await self._guarding.admit(hooks, step, number)
        if step == 1 and self._opening is not None:
            stream = made_by_a_person(self._opening)
        else:
            if user := self._ledger.row.user:
                await self._plan.spending.look(user)
            digests = self._plan.system_digests if self._guard is None else self._guard.digests
            self._billing.admit(PrefixDigests(digests, toolbox.digests, self._plan.settings.reasoning))
            stream = self._plan.models.current.model.stream(self._request(toolbox))
        reply: Assembler | None = None
        is_silent = True
        async with aclosing(stream):  # else, cancelled between two chunks, it would be closed at some time or other
            async for parts in stream:
                if reply is None:
                    reply = self._reply = Assembler(self._ledger.label, partial(ids.new, "c"))
                    self._billing.answered(reply)
                    await opened()  # to commit it while more is read took longer: the threads fight for the GIL
                self._show(reply.feed(parts))
                if is_silent and reply.length():
                    is_silent = False
                    self._billing.first_token()
                if self._pacing is not None and not self.holds_text:
                    self._keep(step, reply, self._pacing)
                reply.check()
        return SentRequest(toolbox, None if reply is None else await self._censored(reply))

    def take(self) -> Assembler | None:
        """The reply, whole or as far as it came; None when there is none, or it has been taken."""
        reply, self._reply = self._reply, None
        return reply

    def put_back(self, reply: Assembler) -> None:
        """Have it taken again."""
        self._reply = reply

    @property
    def written(self) -> int:
        """Characters that have come of the reply, whatever they are; 0: there is none."""
        return 0 if self._reply is None else self._reply.length()

    def partial(self) -> Partial:
        """The reply received so far, as a snapshot shows it."""
        if self._reply is None:
            return Partial("", [])
        uses = [ToolUse(call.id, call.name, "".join(call.args)) for call in self._reply.open_calls()]
        return Partial("" if self.holds_text else self._reply.text(), uses)

    def _show(self, shown: Sequence[events.Event]) -> None:
        if self.holds_text:
            shown = [withheld(event) for event in shown if not isinstance(event, events.TextDelta)]
        self._ledger.live(shown)

    def _keep(self, step: int, reply: Assembler, pacing: Pacing) -> None:
        """Have the text survive a crash."""
        now = asyncio.get_running_loop().time()
        if pacing.is_due(now) and (text := reply.text()):
            kept = PartialText(self._run, step, pacing.take(text, now))
            self._ledger.journal.keep_partial(self._ledger.row.id, kept)

    def _request(self, toolbox: Toolbox) -> ModelRequest:
        return ModelRequest(
            system=self._plan.system if self._guard is None else self._guard.system,
            messages=self._ledger.transcript.messages,
            tools=toolbox.specs,
            reasoning=self._plan.settings.reasoning,
            cache_key=self._ledger.row.id,
            cache_life=self._billing.life,
        )

    @property
    def _guarding(self) -> RequestGuard:
        if self._guard is None:
            self._guard = RequestGuard(self._plan, self._noted)
        return self._guard

    async def _censored(self, reply: Assembler) -> str | None:
        hooks, text = self._plan.hooks(), reply.text()
        if hooks is None or not text or reply.stop == "refusal":
            return None
        shown = await self._guarding.censored(hooks, text)
        if self.holds_text and shown:
            self._ledger.live([events.TextDelta(shown, session=self._ledger.label)])
        return None if shown == text else shown
