"""Another agent as a run sees it: a model whose replies are the steps of the agent's turn, and the tools that it calls itself."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from typing import ClassVar

from zotd.adapters.agent import OtherAgent
from zotd.core.budget import FREE, Rates
from zotd.core.closings import INTERRUPTED
from zotd.core.ports import ModelRequest, Replay, Tool, ToolContext, ToolOutcome, ToolSpec
from zotd.core.reply import Counted, Part, RequestAccepted, ServerAdvice, Stopped
from zotd.core.retry import Failure, ModelError
from zotd.wire.acp import ContentBlock
from zotd.wire.content import Tokens


class AgentModel:
    """A `core.ports.Model` for one run. The request's history is not sent: the agent keeps its own."""

    context_window: ClassVar[int] = 0
    rates: ClassVar[Rates] = FREE
    """Nothing is estimated: budgets count what the agent tells."""

    def __init__(
        self, agent: OtherAgent, prompt: Sequence[ContentBlock] | None, *, before: Callable[[], Awaitable[None]]
    ) -> None:
        """`prompt`: None when the run goes on with one that was cut. `before` is awaited before it is sent."""
        self._agent = agent
        self._prompt = prompt
        self._before = before

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[Part], None]:  # noqa: ARG002  (the agent keeps its own history)
        """Yield the next step of the turn, which the first request begins."""
        turn, notes = self._agent.turn, list[str]()
        if turn is None:
            prompt = self._taken()
            await self._before()
            turn, notes = await self._agent.begin(prompt)
        yield [RequestAccepted(), Counted(Tokens()), *map(ServerAdvice, notes)]
        has_calls = False
        try:
            async for parts in turn.parts():
                last = parts[-1]
                has_calls = isinstance(last, Stopped) and last.reason == "tool_use"
                yield parts
        finally:
            if not has_calls:  # it has ended, failed, or is not wanted any more
                self._agent.end_turn()

    def price(self, tokens: Tokens) -> Tokens:
        """Return the tokens; the agent has told what they cost, or has not."""
        return tokens

    def _taken(self) -> Sequence[ContentBlock]:
        prompt, self._prompt = self._prompt, None
        if prompt is None:
            title = self._agent.title
            raise ModelError(
                Failure.UNAVAILABLE,
                f"{title} cannot go on with a turn that was cut, and its prompt is not sent twice; send a prompt that says what to do",
            )
        return prompt


class AgentTool:
    """A call that the agent makes itself; running it is waiting for its result. Repeating it would be up to the agent: `never`."""

    parallel: ClassVar[bool] = True
    replay: ClassVar[Replay] = Replay.NEVER
    extension: ClassVar[str | None] = None

    def __init__(self, name: str, agent: OtherAgent, item_of: Callable[[str], str]) -> None:
        """`item_of` returns the agent's id of a call of ours."""
        self.spec = ToolSpec(name, "", {})
        self._agent = agent
        self._item_of = item_of

    async def run(self, args: Mapping[str, object], context: ToolContext) -> ToolOutcome:  # noqa: ARG002  (the agent has them)
        """Wait for the call to end. Cancelled, the agent's whole turn is: it cannot end one call."""
        turn, is_over = self._agent.turn, False
        if turn is None:
            return ToolOutcome([*ToolOutcome.error(INTERRUPTED).content], is_error=True, state="unknown")
        try:
            outcome = await turn.follow(self._item_of(context.call_id), context.call_id, context.progress)
            is_over = True
            return outcome
        finally:
            if not is_over:
                self._agent.end_turn()


class AgentTools(Mapping[str, Tool]):
    """The tools of another agent: any name is one, and none is listed."""

    def __init__(self, agent: OtherAgent, item_of: Callable[[str], str]) -> None:
        self._agent = agent
        self._item_of = item_of

    def __getitem__(self, name: str) -> Tool:
        """Return the tool of that name."""
        return AgentTool(name, self._agent, self._item_of)

    def __iter__(self) -> Iterator[str]:
        """List nothing."""
        return iter(())

    def __len__(self) -> int:
        """Count nothing."""
        return 0
