"""A call of a tool that the server runs as a task.

    tools/call with `task` ──> working ──> tasks/get, again and again ──> completed, failed ──> tasks/result
                                  └──> input_required ──> tasks/result: the server asks during this request
    the call is aborted ──> tasks/cancel

The package has the types of tasks, and no client for them.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress

from mcp import MCPError
from mcp.shared.dispatcher import CallOptions
from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
from mcp.types import (
    INTERNAL_ERROR,
    CallToolResult,
    CancelTaskRequest,
    CancelTaskRequestParams,
    CancelTaskResult,
    CreateTaskResult,
    GetTaskPayloadRequest,
    GetTaskPayloadRequestParams,
    GetTaskRequest,
    GetTaskRequestParams,
    GetTaskResult,
    Task,
)

from zotd.bridges.mcp.connection import McpConnection

KEPT_S = 6 * 3600
"""How long the server is asked to keep a task: as long as a call of a tool can take."""

PAUSE_S = 1.0
"""Pause between two questions about a task, if the server does not name one."""

PAUSE_LEAST_S = 0.1

PAUSE_MOST_S = 10.0
"""Each answer is progress of the call, whose time limit is longer than this by default."""

STATE_S = 30.0
"""Time limit for the answer to a question about a task, and for the result of one that has ended."""

CANCEL_S = 1.0
"""Time limit for cancelling a task: the end of a bridge may wait for it."""

ENDED = frozenset({"completed", "failed", "cancelled"})

ASKS = "input_required"

_FAILURES = (MCPError, RuntimeError, TimeoutError, ValueError)


class ToolTask:
    """One call of a tool as a task."""

    def __init__(
        self,
        connection: McpConnection,
        tool: str,
        *,
        pause_most_s: float,
        begun: Callable[[str], None],
        told: Callable[[str], None],
    ) -> None:
        """Prepare a call. `pause_most_s`: longest pause between two questions about the task.

        `begun` is called with the task's id, `told` with each answer about its state, as words for the user.
        """
        self._connection = connection
        self._session = connection.client.session
        self._tool = tool
        self._pause_most_s = min(pause_most_s, PAUSE_MOST_S)
        self._begun = begun
        self._told = told
        self._is_over = False

    async def call(self, args: Mapping[str, object], meta: Mapping[str, object]) -> CallToolResult:
        """Call the tool and return its result. If it is cancelled, or fails before the task ends, the task is cancelled.

        Raises:
            MCPError, RuntimeError, TimeoutError, ValueError: there is no result, or it is invalid.
        """
        answer = await self._ask(args, meta)
        if "task" not in answer:  # the server has run the tool at once
            return await self._checked(CallToolResult.model_validate(answer, by_name=False))
        task = CreateTaskResult.model_validate(answer, by_name=False).task
        self._begun(task.task_id)
        try:
            task = await self._until(task, {*ENDED, ASKS})
            return await self._checked(await (self._asked(task) if task.status == ASKS else self._result(task)))
        finally:
            lost = self._connection.lost  # cancelled: the bridge leaves, and the server is there
            if not self._is_over and (lost.cancelled() or not lost.done()):
                await self._cancel(task)

    async def _ask(self, args: Mapping[str, object], meta: Mapping[str, object]) -> dict[str, object]:
        version = self._connection.client.protocol_version
        options: CallOptions = {"headers": {MCP_PROTOCOL_VERSION_HEADER: version}}
        params = {"name": self._tool, "arguments": args, "task": {"ttl": KEPT_S * 1000}, "_meta": meta}
        # Below the session's own requests: those refuse an answer to `tools/call` that has a task in place of content.
        return await self._session._dispatcher.send_raw_request("tools/call", params, options)  # noqa: SLF001

    async def _until(self, task: Task, states: set[str]) -> Task:
        """Ask about the task until it is in one of these states."""
        while True:
            self._is_over = task.status in ENDED
            if task.status in states:
                return task
            self._told(task.status_message or ("waiting for an answer" if task.status == ASKS else "working"))
            wanted_s = PAUSE_S if task.poll_interval is None else task.poll_interval / 1000
            await asyncio.sleep(min(max(wanted_s, PAUSE_LEAST_S), self._pause_most_s))
            request = GetTaskRequest(params=GetTaskRequestParams(task_id=task.task_id))
            task = await self._session.send_request(request, GetTaskResult, STATE_S)

    async def _result(self, task: Task) -> CallToolResult:
        """Return the result of a task that has ended."""
        if task.status == "cancelled":
            reason = f": {task.status_message}" if task.status_message else ""
            raise MCPError(code=INTERNAL_ERROR, message=f"the MCP server has cancelled the task{reason}")
        try:
            return await self._payload(task, limit_s=STATE_S)
        except MCPError as error:
            if task.status == "failed" and task.status_message:
                raise MCPError(code=error.code, message=task.status_message) from error
            raise

    async def _asked(self, task: Task) -> CallToolResult:
        """Return the result of a task that asks something, while the request for it is open."""
        failure: Exception | None = None
        async with asyncio.TaskGroup() as tasks:
            following = tasks.create_task(self._follow(task), name=f"task {task.task_id}")
            try:
                result = await self._payload(task, limit_s=None)
            except _FAILURES as error:
                failure = error  # raised below: the group would wrap it
            else:
                self._is_over = True
                return result
            finally:
                following.cancel()
        assert failure is not None
        raise failure

    async def _follow(self, task: Task) -> None:
        with suppress(*_FAILURES):  # the request for the result tells of them
            await self._until(task, set(ENDED))

    async def _payload(self, task: Task, *, limit_s: float | None) -> CallToolResult:
        request = GetTaskPayloadRequest(params=GetTaskPayloadRequestParams(task_id=task.task_id))
        return await self._session.send_request(request, CallToolResult, limit_s)

    async def _checked(self, result: CallToolResult) -> CallToolResult:
        """Return the result if it has the form that the tool promises."""
        if not result.is_error:
            await self._session.validate_tool_result(self._tool, result)
        return result

    async def _cancel(self, task: Task) -> None:
        with suppress(*_FAILURES):  # it may have ended, and servers need not be able to
            async with asyncio.timeout(CANCEL_S):
                request = CancelTaskRequest(params=CancelTaskRequestParams(task_id=task.task_id))
                await self._session.send_request(request, CancelTaskResult)
