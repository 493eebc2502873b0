"""What type checkers infer for users of `zot`. Not run: `assert_type` is for mypy and pyright."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict, assert_type

from zot import Agent, Allow, CallContext, Deny, FinishedCall, RunResult, events, tool


@dataclass
class Line:
    cents: int


class Total(TypedDict):
    cents: int


async def results(agent: Agent) -> None:
    assert_type(await agent.run("go"), RunResult[str])
    assert_type((await agent.run("go", output_type=Line)).output, Line)
    assert_type((await agent.run("go", output_type=Total)).output, Total)
    assert_type((await agent.run("go", output_type=list[Line])).output, list[Line])
    assert_type(agent.run_sync("go", output_type=Line).output.cents, int)
    assert_type((await agent.run("go")).calls, Sequence[FinishedCall])
    async for event in agent.stream("go"):
        assert_type(event, events.Event)
    assert_type(agent.stream("go").result.output, str)
    assert_type(agent.stream("go", output_type=Line).result.output, Line)


def hooks(agent: Agent) -> None:
    @agent.on(events.TextDelta)
    def delta(event: events.TextDelta) -> None:
        assert_type(event.delta, str)

    @agent.on(FinishedCall)
    async def call(finished: FinishedCall) -> None: ...

    @agent.guard
    def check(name: str, args: dict[str, object], context: CallContext) -> Deny | None: ...

    @agent.guard
    async def slow(name: str, args: dict[str, object], context: CallContext) -> Allow | Deny | None: ...

    assert_type(check("bash", {}, CallContext("", "")), Deny | None)


@tool(read_only=True)
def double(number: int) -> int:
    return 2 * number


assert_type(double(2), int)


async def decide(name: str, args: dict[str, object], context: CallContext) -> Allow | Deny:
    return Allow({"path": "a"})


agent = Agent(model="gpt-5", tools=[double, print], can_use_tool=decide)
assert_type(agent.fork(model="gpt-5-mini"), Agent)
assert_type(Agent.attach("s_1", can_use_tool=lambda *_: Allow()), Agent)

Agent(mode="asking")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
Agent(modle="gpt-5")  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
Agent.attach("s_1", tools=[])  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
