"""A turn of another agent, cut into the steps that a run of ours has.

    session/prompt ──> (chunk | tool_call | tool_call_update)* ──> its answer
                            │
                            v
    text, calls ──> `Stopped("tool_use")` ──> results ──> text, calls ──> … ──> `Stopped("end_turn")`

The agent makes its calls itself. A step ends with the calls that it has announced; their results are what it reports of them. It does
not wait for us, so what it says meanwhile is kept for the next step, up to `HELD_CHARS`.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable

import msgspec

from zotd.adapters.calls import OTHER, AgentCall
from zotd.core.closings import INTERRUPTED
from zotd.core.ports import ToolOutcome
from zotd.core.reply import (
    CallArgs,
    CallEnd,
    CallStart,
    Counted,
    Part,
    ServerAdvice,
    Signature,
    Stopped,
    TextChunk,
    ThinkingChunk,
)
from zotd.core.retry import Failure, ModelError
from zotd.wire.acp_reports import ReportedCall, ReportedTokens, TurnResult
from zotd.wire.content import Text, Tokens

HELD_CHARS = 4 * 1024 * 1024
"""Most that an agent may say while nothing of it is recorded, because its calls run. It is ended beyond that."""

OPEN_CALLS = 256
"""Most calls that may be open at once, as in a reply of a model."""

PAST_CALLS = 1_024
"""How many ids of calls that have ended are remembered."""

STOPS = {"end_turn": "end_turn", "max_tokens": "length", "max_turn_requests": "end_turn", "refusal": "refusal"}
"""The stop reasons of ACP in our words."""

NOT_SAID = "{} has ended its turn without saying what came of this"


class DrivenTurn:
    """What the agent has said since it was prompted, and what is still to be read of it."""

    def __init__(self, title: str, *, overrun: Callable[[str], None]) -> None:
        """`title` names the agent in sentences. `overrun` is called with a sentence when it says too much."""
        self._title = title
        self._overrun = overrun
        self._items: deque[TextChunk | ThinkingChunk | AgentCall] = deque()
        self._held = 0
        self._calls: dict[str, AgentCall] = {}
        """Those without a recorded result, by the agent's id."""
        self._past: dict[str, None] = {}
        """The ids of calls that have one: what is said of these later is skipped."""
        self._result: TurnResult | None = None
        self._cost_usd = 0.0
        self._failure = ""
        self._is_thinking = False
        self._moved = asyncio.Event()

    @property
    def is_over(self) -> bool:
        """The agent does nothing more in it."""
        return self._result is not None or bool(self._failure)

    # --- what the agent says ------------------------------------------------------------------------------------------

    def said(self, text: str, *, thinks: bool = False) -> None:
        """A piece of its answer, or of its reasoning."""
        if text and not self.is_over:
            self._items.append(ThinkingChunk(text) if thinks else TextChunk(text))
            self._hold(len(text))

    def reported(self, fields: ReportedCall) -> AgentCall:
        """It begins a call, or says more about one."""
        call = self._calls.get(fields.tool_call_id)
        if fields.tool_call_id in self._past or self.is_over:
            return call or AgentCall(fields)
        if call is None:
            call = self._calls[fields.tool_call_id] = AgentCall(fields)
            self._items.append(call)
            if len(self._calls) > OPEN_CALLS:
                self._overrun(f"{self._title} has more than {OPEN_CALLS} tool calls open; it was ended")
        else:
            call.update(fields)
        self._tell()
        return call

    def asked(self, fields: ReportedCall) -> AgentCall:
        """It wants leave for a call, which some agents give an id of its own: it then belongs to the call that runs."""
        if fields.tool_call_id not in self._calls:
            kinds = {fields.kind or OTHER, OTHER}
            running = [one for one in self._calls.values() if one.kind in kinds and not one.has_ended]
            if running:
                running[-1].asked()
                self._tell()
                return running[-1]
        call = self.reported(fields)
        call.asked()
        self._tell()
        return call

    def costs(self, usd: float) -> None:
        """It has spent this much more."""
        self._cost_usd += max(0.0, usd)

    def answered(self, result: TurnResult) -> None:
        """The turn has ended."""
        if not self.is_over:
            self._result = result
            self._tell()

    def failed(self, sentence: str) -> None:
        """The turn will not end in order."""
        if not self.is_over:
            self._failure = sentence
            self._tell()

    # --- what is read of it -------------------------------------------------------------------------------------------

    async def parts(self) -> AsyncGenerator[list[Part], None]:
        """Yield one step as a model's reply would be. Raises ModelError when the turn has failed."""
        while True:
            parts = self._take()
            if parts:
                yield parts
                if isinstance(parts[-1], Stopped):
                    return
            elif self._failure:
                raise ModelError(Failure.UNAVAILABLE, self._failure)
            else:
                await self._move()

    async def key_of(self, call: AgentCall) -> str:
        """Return the id under which people are asked about it: its own, or that of a call which has to end before it is recorded.

        Empty: the turn is over.
        """
        while not call.key:
            if self.is_over:
                return ""
            for other in self._calls.values():
                if other.key:
                    return other.key
            await self._move()
        return call.key

    async def follow(self, item: str, key: str, progress: Callable[[str], None]) -> ToolOutcome:
        """Return what became of the call with the agent's id `item`, which is on record as `key`, when it has ended."""
        call = self._calls.get(item)
        if call is None:
            return ToolOutcome.error(INTERRUPTED)
        call.began(key)
        self._tell()
        shown = ""
        try:
            while not call.has_ended and not self.is_over:
                await self._move()
                text = call.text()
                if text != shown and text.startswith(shown) and not call.has_ended:
                    progress(text[len(shown) :])
                shown = text
        finally:
            self._calls.pop(item, None)
            self._past[item] = None
            if len(self._past) > PAST_CALLS:
                del self._past[next(iter(self._past))]
        if call.has_ended:
            return call.outcome()
        said = self._failure or NOT_SAID.format(self._title)
        text = "\n".join(filter(None, (f"{INTERRUPTED}: {said}", call.text())))
        return ToolOutcome([Text(text)], is_error=True, state="unknown")

    def _take(self) -> list[Part]:
        parts: list[Part] = []
        while self._items and not isinstance(piece := self._items[0], AgentCall):
            self._items.popleft()
            self._held -= len(piece.text)
            if self._is_thinking and isinstance(piece, TextChunk):
                parts.append(Signature())
            self._is_thinking = isinstance(piece, ThinkingChunk)
            parts.append(piece)
        calls: list[AgentCall] = []
        while self._items and isinstance(head := self._items[0], AgentCall) and self._may_show(head):
            self._items.popleft()
            calls.append(head)
        is_last = not self._items and self._result is not None
        if self._is_thinking and (calls or is_last):
            parts.append(Signature())
            self._is_thinking = False
        if calls:
            return [*parts, *self._called(calls), *self._billed(), Stopped("tool_use")]
        if is_last:
            return [*parts, *self._ending()]
        return parts

    def _may_show(self, call: AgentCall) -> bool:
        return call.is_ready or len(self._items) > 1 or self.is_over

    def _called(self, calls: list[AgentCall]) -> list[Part]:
        parts: list[Part] = []
        for index, call in enumerate(calls):
            args = msgspec.json.encode(call.args()).decode()
            parts += [CallStart(index, call.kind, call.id), CallArgs(index, args), CallEnd(index)]
        return parts

    def _billed(self) -> list[Part]:
        """The cost so far; tokens come with the end."""
        cost, self._cost_usd = self._cost_usd, 0.0
        return [Counted(Tokens(cost_usd=cost))]

    def _ending(self) -> list[Part]:
        assert self._result is not None
        usage, reason = self._result.usage or ReportedTokens(), self._result.stop_reason
        tokens = Tokens(
            usage.input_tokens or 0,
            usage.output_tokens or 0,
            usage.cached_read_tokens or 0,
            usage.cached_write_tokens or 0,
            self._cost_usd,
        )
        notes: list[Part] = []
        if reason not in STOPS or reason == "max_turn_requests":
            notes.append(ServerAdvice(f"{self._title} has ended its turn early ({reason[:40]})"))
        return [*notes, Counted(tokens), Stopped(STOPS.get(reason, "end_turn"))]

    def _hold(self, chars: int) -> None:
        self._held += chars
        if self._held > HELD_CHARS:
            self._overrun(f"{self._title} said more than {HELD_CHARS // 1024**2} Mi characters at once; it was ended")
        self._tell()

    async def _move(self) -> None:
        """Wait until something has changed."""
        await self._moved.wait()

    def _tell(self) -> None:
        self._moved.set()
        self._moved = asyncio.Event()
