"""Asks the session's model for a tool that is called (in MCP: sampling).

    allowed? ──> attempt on record ──> request ──> its usage row ──> the answer

One at a time in a run, beside the call that asks, and over with it: a request that is cancelled is billed as far as it came. Nothing
is repeated, neither after a failure nor after a restart.
"""

import asyncio
import logging
from contextlib import suppress
from functools import partial

from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.model_questions import SAMPLING, ModelQuestion, QuestionReply
from zotd.core.ports import ModelRequest, StorageError
from zotd.core.retry import Failure, ModelError
from zotd.ledger.ledger import Ledger, Shown
from zotd.permissions.tool_questions import why_not
from zotd.runs.context import RunContext
from zotd.runs.request_billing import RequestBilling
from zotd.runs.side_request import ask_beside

log = logging.getLogger(__name__)

LIMIT_S = 300.0
"""Longest wait for an answer."""


class RunSampling:
    """The questions of one run's tool calls to the model."""

    def __init__(self, run: str, plan: RunContext, ledger: Ledger) -> None:
        self._run = run
        self._plan = plan
        self._ledger = ledger
        # The transcript knows one request at a time, and people are asked about one at a time.
        self._turn = asyncio.Lock()

    async def answer(self, key: str, question: ModelQuestion) -> QuestionReply:
        """Ask the model for the call `key`, if that is allowed. Never raises; safe to cancel."""
        async with self._turn:
            if (sentence := self._plan.spending.refusal(self._ledger.row)) is not None:
                return QuestionReply("cancel", reason=sentence)
            if (refusal := await why_not(self._plan.authorization, key, question)) is not None:
                return refusal
            try:
                return await self._ask(key, question)
            except ModelError as error:
                return QuestionReply("cancel", reason=error.sentence)
            except StorageError as error:
                return QuestionReply("cancel", reason=f"the journal cannot be written: {error}")
            except Exception:  # a fault of ours or of a vendor's library must cost this question only
                log.exception("the question of a tool to the model failed")
                return QuestionReply("cancel", reason="the question failed inside zot; see the daemon's log")

    async def _ask(self, key: str, question: ModelQuestion) -> QuestionReply:
        asked = self._plan.models.current
        billing = RequestBilling(self._plan, self._ledger, self._run)
        attempt = records.Attempt(
            time=rfc3339(),
            run=self._run,
            step=0,
            number=0,
            provider=asked.provider,
            model=asked.name,
            estimate=billing.begin(SAMPLING, reads=question.tokens),
            asked_by=key,
        )
        request = ModelRequest(
            system=question.system,
            messages=question.messages,
            tools=(),
            max_output=question.max_tokens,
            cache_life=billing.life,
        )
        reply, _ = await ask_beside(
            billing,
            asked.model,
            request,
            record=lambda: self._ledger.write([Shown(attempt)], durable=True),
            bill=partial(self._bill, billing),
            within_s=LIMIT_S,
        )
        text = reply.text()
        if not text or reply.stop == "refusal":
            raise ModelError(Failure.REFUSED, f"{asked.name} gave no answer")
        return QuestionReply("accept", text, reply.answered_by or asked.name, reply.stop or "end_turn")

    def _bill(self, billing: RequestBilling, failure: ModelError | None) -> records.UsageRow:
        """Record the usage with the next commit: the call may be over, and nothing can be waited for."""
        row = billing.bill(0, failure)
        assert row is not None, "the request was begun and not billed"
        with suppress(StorageError):  # the session is read anew when the journal can be written, and bills it then
            self._ledger.defer([Shown(row)], usage=row.tokens)
        return row
