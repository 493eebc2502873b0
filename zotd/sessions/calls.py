"""Runs the tool calls of one step: looks the tool up, records what must be recorded first, gives every call a result."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.ports import Replay, Tool, ToolContext, ToolOutcome
from zotd.core.turn import Call
from zotd.wire import events
from zotd.wire.content import Image, Text, ToolCall, ToolContent

log = logging.getLogger(__name__)

ABORTED = "aborted by the user before it was done; what it had already done stays done"
NOT_STARTED = "not run: the user aborted first"


class Calls:
    """The calls of one run. `ended` is called on the loop with each call's outcome, exactly once per started call."""

    def __init__(
        self,
        *,
        tools: Mapping[str, Tool],
        context: Callable[[str], ToolContext],
        ended: Callable[[str, ToolOutcome], None],
    ) -> None:
        """`context` makes a call's context from its id; `tools` are those that the session may use."""
        self._tools = tools
        self._context = context
        self._ended = ended
        self._calls: dict[str, ToolCall] = {}
        self._broken: frozenset[str] = frozenset()
        self._tasks: dict[str, asyncio.Task[ToolOutcome]] = {}

    def expect(self, calls: Sequence[ToolCall], broken: frozenset[str]) -> list[Call]:
        """The calls of a reply, as the turn wants to know them; `broken` have arguments that are not JSON."""
        self._calls = {call.id: call for call in calls}
        self._broken = broken
        return [Call(call.id, self._is_parallel(call)) for call in calls]

    def started(self, run: str, ids: Sequence[str]) -> list[records.CallStarted]:
        """What has to be on disk before these calls start: one record for each that is not safe to repeat."""
        found: list[records.CallStarted] = []
        for call in (self._calls[key] for key in ids):
            tool = self._tools.get(call.name)
            if tool is not None and call.id not in self._broken and tool.replay is not Replay.SAFE:
                record = records.CallStarted(
                    time=rfc3339(),
                    run=run,
                    call_id=call.id,
                    name=call.name,
                    args=call.args,
                    replay=tool.replay,
                )
                found.append(record)
        return found

    def start(self, ids: Sequence[str], tasks: asyncio.TaskGroup) -> None:
        """Run these calls side by side."""
        for key in ids:
            task = tasks.create_task(self._run(self._calls[key]), name=f"call {key}")
            self._tasks[key] = task
            # The callback and not the task tells the outcome: a task that is cancelled before its first step
            # never runs a line of its own.
            task.add_done_callback(partial(self._tell, key))

    def cut(self, ids: Sequence[str]) -> None:
        """End these calls now; each still gets its outcome."""
        for key in ids:
            task = self._tasks.get(key)
            if task is not None:  # else it has ended, and its outcome is on its way to the turn
                task.cancel()

    def result(self, run: str, key: str, outcome: ToolOutcome) -> tuple[records.CallResult, events.ToolResultEvent]:
        """The record of a call's outcome, and the event that shows it."""
        call = self._calls[key]
        record = records.CallResult(
            time=rfc3339(),
            run=run,
            call_id=key,
            name=call.name,
            is_error=outcome.is_error,
            content=outcome.content,
        )
        return record, events.ToolResultEvent(key, outcome.is_error, shown(outcome), name=call.name, time=record.time)

    def _is_parallel(self, call: ToolCall) -> bool:
        tool = self._tools.get(call.name)
        return tool is None or tool.parallel

    async def _run(self, call: ToolCall) -> ToolOutcome:
        tool = self._tools.get(call.name)
        if tool is None:
            names = ", ".join(sorted(self._tools)) or "none"
            return failure(f'unknown tool "{call.name}"; the tools here are: {names}')
        if call.id in self._broken:
            return failure(f"the arguments of {call.name} were not a JSON object; call it again with legal JSON")
        try:
            return await tool.run(call.args, self._context(call.id))
        except Exception as error:  # a tool's fault must cost this call only
            log.exception("tool %s failed", call.name)
            return failure(f"{call.name} failed inside zot: {type(error).__name__}; the daemon's log says more")

    def _tell(self, key: str, task: asyncio.Task[ToolOutcome]) -> None:
        del self._tasks[key]
        self._ended(key, failure(ABORTED) if task.cancelled() else task.result())


def failure(text: str) -> ToolOutcome:
    """An error result with one sentence."""
    return ToolOutcome([Text(text)], is_error=True)


def shown(outcome: ToolOutcome) -> ToolContent:
    """The outcome's content as clients see it: images as byte counts."""
    return [Image(block.mime_type, block.bytes) if isinstance(block, Image) else block for block in outcome.content]
