"""What the model requests of one run cost: set aside before they are sent, billed when they have ended.

begin -> [admit -> [answered]] -> bill
"""

import time
from collections.abc import Sequence

from zotd.clock import rfc3339
from zotd.core import budget, records
from zotd.core.records import CacheLife, PrefixDigests
from zotd.core.reply import Assembler
from zotd.core.retry import OF_UNKNOWN_COST, Failure, ModelError
from zotd.ledger.ledger import Ledger
from zotd.runs.context import RunContext
from zotd.wire import events
from zotd.wire.content import Block, Tokens

REPLY, COMPACTION = "reply", "compaction"
"""What a request is for: `purpose` of a usage row."""

ABORTED = "aborted"
"""`failure` of the usage row of a request that did not fail, and was not answered in full either."""


class RequestBilling:
    """Sends one request after the other, and records exactly one usage row for each, also for failed ones.

        begin -> [admit -> [answered]] -> bill

    `close` it when the run is over.
    """

    def __init__(self, plan: RunContext, ledger: Ledger, run: str) -> None:
        self._plan = plan
        self._ledger = ledger
        self._run = run
        self._coming = 0
        self._purpose: str | None = None
        self._asked = plan.models.current
        """The model of the request that is under way."""
        self._reply: Assembler | None = None
        self._reservation: int | None = None
        # By a clock that runs without an event loop, too: a request may be billed where there is none.
        self._sent: float | None = None
        self._first: float | None = None
        self._prefix: PrefixDigests | None = None
        self.life: CacheLife = "5m"
        """How long the vendor is to keep the request in its cache."""
        self.estimate = Tokens()
        """What the request counts as until the vendor sends figures."""

    def expect(self, content: Sequence[Block]) -> None:
        """The next request reads this too, which is not in the transcript yet."""
        self._coming += budget.size(content)

    def begin(self, purpose: str = REPLY, *, reads: int | None = None) -> Tokens:
        """A request is about to be recorded: from here on its usage row is due. The result is its estimate.

        `reads`: how many tokens it reads, roughly; None: it reads the transcript.
        """
        if reads is None:
            messages, known = self._ledger.transcript.messages, self._ledger.row.context
            reads = budget.context(messages, known, self._plan.system) + self._coming
        self._asked = self._plan.models.current
        trace, now, self.life = self._ledger.transcript.cache, self._plan.clock(), "off"
        if purpose == REPLY:  # what is written of a summary's request would never be read
            soon = trace.life if now <= trace.fresh_until else trace.life_after_pause(now)
            self.life = soon if self._plan.cache.ttl == "auto" else self._plan.cache.ttl
        self.estimate = budget.estimate(reads, self._asked.model.rates, self._plan.spending.floor, self.life)
        self._coming = 0
        self._purpose = purpose
        self._prefix = None
        self._reply = None
        self._sent = self._first = None
        return self.estimate

    async def look(self) -> None:
        """Find out what the session's user has spent, before `admit`."""
        if self._ledger.row.user:
            await self._plan.spending.look(self._ledger.row.user)

    def admit(self, prefix: PrefixDigests | None = None) -> None:
        """Set the estimate aside: the request, which begins with `prefix`, is sent now.

        Raises:
            ModelError: a budget is used up.
        """
        sentence = self._plan.spending.refusal(self._ledger.row)
        if sentence is not None:
            raise ModelError(Failure.REFUSED, sentence)
        self._reservation = self._plan.spending.reserve(self.estimate, self._ledger.row.user)
        self._prefix = None if self.life == "off" else prefix
        self._sent = time.monotonic()

    def answered(self, reply: Assembler) -> None:
        """The vendor has begun to answer; `reply` has its figures when they come."""
        self._reply = reply

    def first_token(self) -> None:
        """The first text, thought or call of the reply is here."""
        self._first = time.monotonic()

    def bill(self, step: int, error: ModelError | None = None) -> records.UsageRow | None:
        """The usage row of the request, which has ended: with `error`, else as its reply says.

        None when no row is due.
        """
        if self._purpose is None:
            return None
        tokens, sent, first = self._took(error), self._sent, self._first
        row = records.UsageRow(
            time=rfc3339(self._plan.clock()),
            run=self._run,
            step=step,
            provider=self._asked.provider,
            model=self._asked.name,
            tokens=tokens,
            purpose=self._purpose,
            estimate=self._correction(tokens),
            reasoning=0 if self._reply is None else self._reply.reasoning,
            took_s=None if sent is None else round(time.monotonic() - sent, 4),
            first_s=None if sent is None or first is None else round(first - sent, 4),
            answered_by="" if self._reply is None else self._reply.answered_by,
            failure=str(error.failure) if error is not None else "" if self._is_whole else ABORTED,
            prefix=self._prefix,
        )
        self._settle(budget.counted(row))
        self._purpose = None
        if self._prefix is None:
            return row
        row, miss = self._ledger.transcript.cache.compared(row, self._ledger.transcript.messages)
        if miss is not None and self._plan.cache.notice:
            text = miss.sentence(self._asked.model.price, self.life)
            self._ledger.live([events.Notice("info", text, session=self._ledger.label)])
        return row

    def close(self) -> None:
        """Release what was reserved for a request without a bill, because the journal could not be written."""
        self._settle(self.estimate)

    @property
    def _is_whole(self) -> bool:
        return self._reply is not None and self._reply.stop is not None

    def _took(self, error: ModelError | None) -> Tokens | None:
        """Return the vendor's figures with their price; zero for a free request; None if the vendor sent none."""
        if self._reply is not None:
            return None if self._reply.tokens is None else self._asked.model.price(self._reply.tokens)
        was_sent = self._reservation is not None
        return None if was_sent and (error is None or error.failure in OF_UNKNOWN_COST) else Tokens()

    def _correction(self, tokens: Tokens | None) -> Tokens | None:
        if self._reservation is None or (self._reply is None and tokens is not None):
            return None  # it cost nothing
        return budget.correction(
            tokens,
            is_whole=self._is_whole,
            expected=self.estimate,
            rates=self._asked.model.rates,
            floor=self._plan.spending.floor,
        )

    def _settle(self, took: Tokens) -> None:
        reservation, self._reservation = self._reservation, None
        if reservation is not None:
            self._plan.spending.settle(reservation, took)
