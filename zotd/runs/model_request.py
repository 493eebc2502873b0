"""Asks the model: the guards first, then the request, then the guards about the reply."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from zotd import ids
from zotd.contributions.guards import Hooks
from zotd.contributions.toolbox import Toolbox
from zotd.core.pacing import Pacing
from zotd.core.ports import ModelRequest, PartialText
from zotd.core.records import Opening
from zotd.core.reply import Assembler, CallArgs, CallEnd, CallStart, Counted, Part, RequestAccepted, Stopped
from zotd.core.retry import Failure, ModelError
from zotd.exthost.guards import GuardRemark, GuardVerdict
from zotd.ledger.ledger import Ledger
from zotd.runs.billing import RequestBilling
from zotd.runs.context import RunContext
from zotd.wire import events
from zotd.wire.api import Partial, ToolUse
from zotd.wire.base import ENCODER
from zotd.wire.content import Block, Text, Tokens


@dataclass(frozen=True, slots=True)
class SentRequest:
    """How a request was answered; the reply itself is `RequestSender.take()`."""

    toolbox: Toolbox
    """What the model could choose from."""
    seen: str | None
    """The reply's text as guards want people to see it, empty when they hide it; None: as it is."""


class RequestSender:
    """The model requests of one run, one after another."""

    def __init__(
        self,
        run: str,
        plan: RunContext,
        ledger: Ledger,
        billing: RequestBilling,
        *,
        noted: Callable[[Sequence[GuardRemark]], None],
    ) -> None:
        """The requests of the run with this id. `billing` pays.

        `noted` is told what guards did that a reader of the transcript should know.
        """
        self._plan = plan
        self._ledger = ledger
        self._billing = billing
        self._noted = noted
        self._run = run
        self._pacing = Pacing()
        self._reply: Assembler | None = None
        self._system: str | None = None
        """The system prompt, once the guards have seen it."""
        self.holds_text = False
        """The reply's text is not shown before the guards have seen all of it."""

    async def ask(self, step: int, number: int, opened: Callable[[], Awaitable[None]]) -> SentRequest:
        """Send the request for this try of this step, and read the reply to its end; shows what arrives.

        `opened` is awaited when the provider has begun to answer. Safe to cancel: what has come so far stays.

        Raises:
            ModelError: the request failed, a guard did not want it sent, or a budget is used up.
        """
        toolbox = self._plan.toolbox()
        if self._plan.hooks is not None:
            await self._admit(self._plan.hooks, step, number)
        if step == 1 and self._plan.opening is not None:
            stream = self._opening(self._plan.opening)
        else:
            self._billing.admit()
            stream = self._plan.model.stream(self._request(toolbox))
        reply = Assembler(self._ledger.label, partial(ids.new, "c"))
        self._pacing.begin()
        async with aclosing(stream):  # else, cancelled between two chunks, it would be closed at some time or other
            async for parts in stream:
                if self._reply is None:
                    self._reply = reply
                    self._billing.answered(reply)
                    await opened()  # to commit it while more is read took longer: the threads fight for the GIL
                self._show(reply.feed(parts))
                self._keep(step, reply)
                reply.check()
        return SentRequest(toolbox, await self._censored(reply))

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
        """What has come of the reply, as a snapshot shows it."""
        if self._reply is None:
            return Partial("", [])
        uses = [ToolUse(call.id, call.name, "".join(call.args)) for call in self._reply.open_calls()]
        return Partial("" if self.holds_text else self._reply.text(), uses)

    def _show(self, shown: Sequence[events.Event]) -> None:
        if self.holds_text:
            shown = [_withheld(event) for event in shown if not isinstance(event, events.TextDelta)]
        self._ledger.live(shown)

    def _keep(self, step: int, reply: Assembler) -> None:
        """Have the text survive a crash, but for what guards have not let through yet."""
        now = asyncio.get_running_loop().time()
        if not self.holds_text and self._pacing.is_due(now) and (text := reply.text()):
            kept = PartialText(self._run, step, self._pacing.take(text, now))
            self._ledger.journal.keep_partial(self._ledger.row.id, kept)

    def _request(self, toolbox: Toolbox) -> ModelRequest:
        return ModelRequest(
            system=self._plan.system if self._system is None else self._system,
            messages=self._ledger.transcript.messages,
            tools=toolbox.specs,
            reasoning=self._plan.settings.reasoning,
        )

    async def _opening(self, opening: Opening) -> AsyncGenerator[Sequence[Part], None]:
        """A call that a person has chosen, as if the model had made it; it costs nothing."""
        yield [
            RequestAccepted(),
            CallStart(0, opening.name),
            CallArgs(0, ENCODER.encode(opening.args).decode()),
            CallEnd(0),
            Counted(Tokens()),
            Stopped("tool_use"),
        ]

    async def _admit(self, hooks: Hooks, step: int, number: int) -> None:
        if self._system is None:
            asked = await hooks.system_prompt(self._plan.system)
            self._heed(asked)
            self._system = asked.value
        if number == 1:
            self._heed(await hooks.step(step))
        self.holds_text = hooks.holds_text

    def _heed(self, verdict: GuardVerdict[str] | GuardVerdict[int]) -> None:
        """Raise ModelError when the guards are against it."""
        if verdict.notes:
            self._noted(verdict.notes)
        if verdict.is_blocked:
            raise ModelError(Failure.REFUSED, verdict.reason)

    async def _censored(self, reply: Assembler) -> str | None:
        hooks, text = self._plan.hooks, reply.text()
        if hooks is None or not text or reply.stop == "refusal":
            return None
        verdict = await hooks.message(text)
        if verdict.notes:
            self._noted(verdict.notes)
        shown = "" if verdict.is_blocked else verdict.value
        if self.holds_text and shown:
            self._ledger.live([events.TextDelta(shown, session=self._ledger.label)])
        return None if shown == text else shown


def _withheld(event: events.Event) -> events.Event:
    """The event without what the model thinks: guards judge the text only, and the one often says the other."""
    return events.ThinkingDelta("", session=event.session) if isinstance(event, events.ThinkingDelta) else event


def rewritten(content: list[Block], text: str) -> list[Block]:
    """The content of a reply with this text instead of its own."""
    return [*([Text(text)] if text else []), *(block for block in content if not isinstance(block, Text))]
