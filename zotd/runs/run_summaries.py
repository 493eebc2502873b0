"""Where a run whose transcript is nearly full gets its summary from.

    begin -> what it returns is on record -> get

Usually the early summary is there at the upper mark, so the run does not wait. Otherwise the run waits for the rest of the request
that is under way, and only without one for a whole request (`runs.compaction`).
"""

import sys
from collections.abc import Sequence
from enum import Enum, auto

from zotd.core.retry import ModelError
from zotd.ledger.ledger import Ledger, Shown
from zotd.runs.compaction import Summary, summarise, told
from zotd.runs.context import RunContext
from zotd.runs.early_summary import EarlyRequest
from zotd.runs.request import Attempts
from zotd.runs.request_billing import RequestBilling


class Source(Enum):
    """Where a run's summary comes from."""

    READY = auto()  # an early one is on record
    COMING = auto()  # an early one has been requested
    NOW = auto()  # it is requested now, and the run waits


class RunSummaries:
    """The summaries that one run needs: made early, on their way, or requested now, in this order of preference.

    begin -> its record is committed -> get
    """

    def __init__(
        self,
        run: str,
        plan: RunContext,
        ledger: Ledger,
        *,
        attempts: Attempts,
        billing: RequestBilling,
        early: EarlyRequest,
    ) -> None:
        """`billing` pays for what is requested now; `early` is the session's."""
        self._run = run
        self._plan = plan
        self._ledger = ledger
        self._attempts = attempts
        self._billing = billing
        self._early = early
        self._source = Source.NOW

    def begin(self, step: int) -> Sequence[Shown]:
        """The transcript is to be summarised before the next request; returns what has to be on record before `get`."""
        if self._ready() is not None:
            self._source = Source.READY
            return ()
        self._source = Source.COMING if self._ledger.transcript.early.is_wanted else Source.NOW
        return [self._attempts.summary(step, waits=self._source is Source.COMING)]

    async def get(self) -> Summary | None:
        """Return the summary; None: the request that it waited for brought nothing, so begin again.

        Raises:
            ModelError: as `summarise`.
        """
        if self._source is Source.COMING:
            await self._early.ended.wait()
        if self._source is not Source.NOW:
            return self._used()
        try:
            with told(self._run, self._plan, self._ledger, reason="auto"):
                model = self._plan.models.current.model
                return await summarise(self._billing, model, self._ledger.transcript.messages)
        except ModelError as error:
            sentence = f"the transcript is too long and could not be summarised: {error.sentence}"
            raise ModelError(error.failure, sentence, retry_after_s=error.retry_after_s, status=error.status) from error

    def _used(self) -> Summary | None:
        """The early summary; extensions are told of it now, and not when it was requested."""
        found = self._ready()
        if found is not None:
            with told(self._run, self._plan, self._ledger, reason="auto"):
                pass
        return found

    def _ready(self) -> Summary | None:
        messages = self._ledger.transcript.messages
        # One that leaves more than the lower mark would be followed by the next one at once.
        limit = int(
            self._plan.models.current.model.context_window * (self._plan.compact_early_at or self._plan.compact_at)
        )
        found = self._ledger.transcript.early.usable(messages, limit or sys.maxsize)
        return None if found is None else Summary(found.text, len(messages) - found.covers)
