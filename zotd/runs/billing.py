"""Pays for the model requests of one run: asks whether the budgets allow one, and makes the usage row of each."""

from collections.abc import Sequence

from zotd.clock import rfc3339
from zotd.core import budget, records
from zotd.core.reply import Assembler
from zotd.core.retry import OF_UNKNOWN_COST, Failure, ModelError
from zotd.ledger.ledger import Ledger
from zotd.runs.context import RunContext
from zotd.wire.content import Block, Tokens

REPLY, COMPACTION = "reply", "compaction"
"""What a request is for: `purpose` of a usage row."""


class RequestBilling:
    """One request after the other, and exactly one usage row for each, whatever becomes of it.

        begin -> [admit -> [answered]] -> bill

    `close` it when the run is over.
    """

    def __init__(self, plan: RunContext, ledger: Ledger, run: str) -> None:
        self._plan = plan
        self._ledger = ledger
        self._run = run
        self._coming = 0
        self._purpose: str | None = None
        self._reply: Assembler | None = None
        self._reservation: int | None = None
        self.estimate = Tokens()
        """What the request counts with as long as nobody knows better."""

    def expect(self, content: Sequence[Block]) -> None:
        """The next request reads this too, which is not in the transcript yet."""
        self._coming += budget.size(content)

    def begin(self, purpose: str = REPLY) -> Tokens:
        """A request is about to be recorded: from here on its usage row is due. The result is its estimate."""
        messages, known = self._ledger.transcript.messages, self._ledger.row.context
        reads = budget.context(messages, known, self._plan.system) + self._coming
        self.estimate = budget.estimate(reads, self._plan.model.rates, self._plan.spending.floor)
        self._coming = 0
        self._purpose = purpose
        self._reply = None
        return self.estimate

    def admit(self) -> None:
        """Set the estimate aside: the request is sent now.

        Raises:
            ModelError: a budget is used up.
        """
        row = self._ledger.row
        sentence = self._plan.spending.refusal(row.settings, row.spent)
        if sentence is not None:
            raise ModelError(Failure.REFUSED, sentence)
        self._reservation = self._plan.spending.reserve(self.estimate)

    def answered(self, reply: Assembler) -> None:
        """The vendor has begun to answer; `reply` has its figures when they come."""
        self._reply = reply

    def bill(self, step: int, error: ModelError | None = None) -> records.UsageRow | None:
        """The usage row of the request, which has ended: with `error`, else as its reply says.

        None when no row is due.
        """
        if self._purpose is None:
            return None
        tokens = self._took(error)
        row = records.UsageRow(
            time=rfc3339(),
            run=self._run,
            step=step,
            provider=self._plan.settings.provider,
            model=self._plan.settings.model,
            tokens=tokens,
            purpose=self._purpose,
            estimate=self._correction(tokens),
        )
        self._settle(budget.counted(row))
        self._purpose = None
        return row

    def close(self) -> None:
        """Let go of what is set aside for a request that nobody has billed: the journal could not write."""
        self._settle(self.estimate)

    def _took(self, error: ModelError | None) -> Tokens | None:
        """The vendor's figures with their price; nothing for a request that costs nothing; None when nobody knows."""
        if self._reply is not None:
            return None if self._reply.tokens is None else self._plan.model.price(self._reply.tokens)
        was_sent = self._reservation is not None
        return None if was_sent and (error is None or error.failure in OF_UNKNOWN_COST) else Tokens()

    def _correction(self, tokens: Tokens | None) -> Tokens | None:
        if self._reservation is None or (self._reply is None and tokens is not None):
            return None  # it cost nothing
        return budget.correction(
            tokens,
            is_whole=self._reply is not None and self._reply.stop is not None,
            expected=self.estimate,
            rates=self._plan.model.rates,
            floor=self._plan.spending.floor,
        )

    def _settle(self, took: Tokens) -> None:
        reservation, self._reservation = self._reservation, None
        if reservation is not None:
            self._plan.spending.settle(reservation, took)
