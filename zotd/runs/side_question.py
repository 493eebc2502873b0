"""Answers a person's question from the conversation, without adding to it (`/btw`).

    attempt on record ──> request ──> its usage row ──> the answer, to the one who asked

It may be asked while a run goes on. The model reads what it has read so far, so that its vendor's cache has most of it, and no
tool runs. One at a time in a session. Nothing is repeated, neither after a failure nor after a restart.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from zotd.clock import rfc3339
from zotd.core import budget, records
from zotd.core.model_questions import SIDE_QUESTION
from zotd.core.ports import ModelRequest
from zotd.core.records import CacheLife
from zotd.core.retry import Failure, ModelError
from zotd.core.transcript import Transcript
from zotd.ids import new as new_id
from zotd.ledger.ledger import Ledger, Shown
from zotd.runs.context import RunContext
from zotd.runs.request_billing import RequestBilling
from zotd.runs.side_request import ask_beside
from zotd.tasks import ignore_failure
from zotd.wire.api import SideAnswer
from zotd.wire.content import Message, Text, ToolCall
from zotd.wire.errors import Code, CommandError

LIMIT_S = 120.0
"""Longest wait for an answer."""

MAX_OUTPUT = 4_096
"""Most tokens of an answer; it is shown on a card."""

ASKED = """\
[This is a question beside the conversation, asked while your work may go on. Answer it briefly from what you know by now. \
You cannot use tools for it, and neither the question nor your answer becomes part of the conversation.]

{}"""


class SideQuestions:
    """The questions beside the conversation of one session."""

    def __init__(self, ledger: Ledger, changed: Callable[[], None]) -> None:
        """`changed` is called when an answer is over."""
        self._ledger = ledger
        self._changed = changed
        self.is_asking = False
        """A question is being answered."""

    async def answer(self, plan: RunContext, question: str, show: Callable[[str], None]) -> SideAnswer:
        """Ask the session's model; `show` gets the answer piece by piece. Safe to cancel.

        Raises:
            CommandError: another question is being answered, or there is no answer, in a sentence.
            StorageError: the journal cannot be written.
        """
        if self.is_asking:
            raise CommandError(Code.BUSY, "another question beside the conversation is being answered; wait for it")
        self.is_asking = True
        try:
            return await self._ask(plan, question, show)
        except ModelError as error:
            raise CommandError(Code.BAD_REQUEST, error.sentence) from error
        finally:
            self.is_asking = False
            self._changed()

    async def _ask(self, plan: RunContext, question: str, show: Callable[[str], None]) -> SideAnswer:
        asked, transcript = plan.models.current, self._ledger.transcript
        messages = [*answered(transcript), Message("user", [Text(ASKED.format(question))], rfc3339())]
        billing = RequestBilling(plan, self._ledger, transcript.run or new_id("r"))
        request = ModelRequest(
            system=plan.system,
            messages=messages,
            # Without them, vendors would refuse the calls in the messages, or not find what they have cached.
            tools=plan.toolbox().specs,
            max_output=MAX_OUTPUT,
            cache_key=self._ledger.row.id,
            cache_life=_cache_life(transcript, plan),
        )
        attempt = records.Attempt(
            time=rfc3339(),
            run=transcript.run or "",
            step=0,
            number=0,
            provider=asked.provider,
            model=asked.name,
            estimate=billing.begin(SIDE_QUESTION, reads=sum(budget.size(one.content) for one in messages)),
            asked_by=SIDE_QUESTION,
        )
        reply, row = await ask_beside(
            billing,
            asked.model,
            request,
            record=lambda: self._record(attempt),
            bill=partial(self._bill, billing),
            within_s=LIMIT_S,
            show=show,
        )
        text = reply.text().strip()
        if not text or reply.stop == "refusal":
            raise ModelError(Failure.REFUSED, f"{asked.name} gave no answer; ask in other words, or in a prompt")
        tokens = row.tokens if row is not None and row.tokens is not None else billing.estimate
        return SideAnswer(text, asked.provider, reply.answered_by or asked.name, tokens)

    def _record(self, attempt: records.Attempt) -> asyncio.Future[None]:
        # A restart looks into a session that is not idle, and bills the request.
        state = "running" if self._ledger.row.state == "idle" else self._ledger.row.state
        return self._ledger.write([Shown(attempt)], durable=True, state=state)

    def _bill(self, billing: RequestBilling, failure: ModelError | None) -> records.UsageRow | None:
        row, transcript = billing.bill(0, failure), self._ledger.transcript
        # Without it, the session was read anew meanwhile, which has billed the request.
        if row is None or SIDE_QUESTION not in transcript.beside:
            return row
        is_at_rest = not transcript.run_open and transcript.shell is None and not transcript.waiting
        is_over = is_at_rest and transcript.early.sent is None and self._ledger.row.state == "running"
        state = "idle" if is_over else self._ledger.row.state
        # If it fails, the session is read anew when the journal can be written, and bills the request then.
        ignore_failure(self._ledger.write([Shown(row)], durable=True, usage=row.tokens, state=state))
        return row


def answered(transcript: Transcript) -> Sequence[Message]:
    """Return the messages up to the last one at which each call had its result."""
    pending = {call.id for call in transcript.open_calls}
    for index, message in enumerate(transcript.messages):
        if any(isinstance(block, ToolCall) and block.id in pending for block in message.content):
            return transcript.messages[:index]
    return [*transcript.messages]


def _cache_life(transcript: Transcript, plan: RunContext) -> CacheLife:
    """Return how long the request is to be cached: only if its vendor has the beginning of it already."""
    trace = transcript.cache
    return trace.life if trace.last is not None and plan.clock() <= trace.fresh_until else "off"
