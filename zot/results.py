"""What a run did: collected from its events."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from zotd.wire import events
from zotd.wire.content import Block, Message, Text, Tokens

Output = TypeVar("Output")


@dataclass(frozen=True, slots=True)
class FinishedCall:
    """A tool call that has its result."""

    id: str
    name: str
    args: dict[str, object]
    """As the model wrote them."""
    text: str
    """Text of the result that the model read."""
    is_error: bool


@dataclass(frozen=True, slots=True)
class RunResult(Generic[Output]):
    """The result of a run."""

    output: Output
    """The same as `text`, or the value if the run has an output type."""
    text: str
    """Text of the last reply."""
    messages: Sequence[Message]
    """The whole conversation, oldest first. `Agent(resume=…)` continues it."""
    usage: Tokens
    """Tokens of this run's model requests, and their cost."""
    calls: Sequence[FinishedCall]
    """Tool calls of this run, in the order in which they ended."""
    stop: str
    """Why the last reply ended: `end_turn`, `length`, `error` or `aborted`."""

    @property
    def cost_usd(self) -> float:
        """What the run cost in US dollars; a request whose price is unknown counts as 0."""
        return self.usage.cost_usd


class CollectedRun:
    """A run so far."""

    def __init__(self) -> None:
        self._text = ""
        self._stop = ""
        self._usage = Tokens()
        self._requested: dict[str, events.ToolCallEvent] = {}
        self._calls: list[FinishedCall] = []
        self._error = ""

    def see(self, event: events.Event) -> FinishedCall | None:
        """Process the next event; return the call that ended with it."""
        match event:
            case events.AssistantMessage():
                self._text = text_of(event.content)
            case events.TurnEnd():
                self._stop = event.stop
                self._error = event.error or self._error
            case events.Usage():
                spent = Tokens(event.input, event.output, event.cache_read, event.cache_write, event.cost_usd)
                self._usage += spent
            case events.ToolCallEvent():
                self._requested[event.id] = event
            case events.ToolResultEvent() if event.id in self._requested:
                call = self._requested.pop(event.id)
                finished = FinishedCall(call.id, call.name, call.args, text_of(event.content), event.is_error)
                self._calls.append(finished)
                return finished
            case events.Error() | events.Blocked():
                self._error = event.message
            case _:
                pass  # for people who watch
        return None

    def result(self, messages: Sequence[Message]) -> RunResult[str]:
        """Return what there is; `messages` is the conversation now."""
        return RunResult(self._text, self._text, messages, self._usage, tuple(self._calls), self._stop)

    @property
    def is_aborted(self) -> bool:
        """Whether the run was aborted."""
        return self._stop == "aborted"

    @property
    def failure(self) -> str | None:
        """Why there is no answer, as one sentence; None if there is one."""
        if self.is_aborted:
            return "the run was aborted"
        if self._error or self._stop == "error":
            return self._error or "the model request failed"
        return None


def with_output(result: RunResult[str], output: Output) -> RunResult[Output]:
    """Return the result with this output."""
    return RunResult(output, result.text, result.messages, result.usage, result.calls, result.stop)


def joined(first: RunResult[str], second: RunResult[str]) -> RunResult[str]:
    """Return the second result with what the first one cost and called."""
    return replace(second, usage=first.usage + second.usage, calls=(*first.calls, *second.calls))


def text_of(content: Sequence[Block]) -> str:
    """Return the text in these blocks."""
    return "".join(block.text for block in content if isinstance(block, Text))
