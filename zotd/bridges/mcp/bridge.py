"""Translates between host and server: forwards calls to the server, and registers with the host what the server offers.

    tool_call ──> a task ──> tools/call ──> tool_result         tool_cancel ends the task, which sends `cancelled`
                             progress ──> tool_progress         (a tool that needs a task of the server: `tool_task`)
    command_invoked ──> a task ──> prompts/get ──> command_response
    event_intercept, a prompt ──> resources/read ──> event_intercept_response
    …/list_changed ──> tools/list, resources/list, prompts/list ──> register_tool, register_command, unregister

Every call gets exactly one answer, even if the server is lost.
"""

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import NoReturn, cast

from mcp import MCPError
from mcp.client import IncomingMessage
from mcp.types import (
    CONNECTION_CLOSED,
    ProgressNotification,
    Prompt,
    PromptListChangedNotification,
    RequestParamsMeta,
    ResourceListChangedNotification,
    Tool,
    ToolListChangedNotification,
)
from msgspec import UNSET

from zotd.bridges.host_link import HostLink
from zotd.bridges.mcp.access import ServerAccess
from zotd.bridges.mcp.connection import McpConnection, connected, needs_a_task
from zotd.bridges.mcp.elicitation import Elicitation
from zotd.bridges.mcp.host_questions import HostQuestions
from zotd.bridges.mcp.http import CLOSED
from zotd.bridges.mcp.prompts import MissingArgumentError, arguments, command_error, command_response
from zotd.bridges.mcp.results import progress_text, tool_error, tool_result
from zotd.bridges.mcp.running_calls import RunningCalls, token_of
from zotd.bridges.mcp.sampling import Sampling
from zotd.bridges.mcp.server_offers import ServerOffers
from zotd.bridges.mcp.server_place import ServerPlace
from zotd.bridges.mcp.tool_task import PAUSE_MOST_S, ToolTask
from zotd.sdk.pipe import Frame, text
from zotd.wire.mcp import McpServer, ServerError

log = logging.getLogger(__name__)

LEAVE_S = 1.6
"""Time from the host's `shutdown` to the end, whatever the server does. The host waits 2 s for the exit."""

INSTRUCTIONS_CHARS = 64 * 1024
"""Most of a server's instructions that fits into a frame; the host uses less."""

LIST_CHANGED = ToolListChangedNotification | PromptListChangedNotification | ResourceListChangedNotification

PROMPT_S = 25.0
"""How long a server may take for a prompt; the host waits 30 s for the answer to a command."""

PACKAGE_LOST = ("Connection closed", "SSE stream ")
"""How an error of the package begins that has lost the server. Its code, -32000, is also that of many servers for any failure."""

LOST = "the MCP server was lost during the call; it is unknown whether the call had an effect"


class McpBridge:
    """The bridge between one server and the host."""

    def __init__(
        self, name: str, server: McpServer, place: ServerPlace, pipe: HostLink, *, logins: Path | None
    ) -> None:
        """Prepare the bridge; `hello` was sent. `logins`: the file with those of the home."""
        self._name = name
        self._server = server
        # Each answer about a task is progress, so there has to be one before the time limit of the call.
        self._pause_most_s = PAUSE_MOST_S if server.timeout_s is UNSET else server.timeout_s / 2
        self._place = place
        self._access = None if logins is None else ServerAccess(name, server.url, logins)
        self._pipe = pipe
        self._offers = ServerOffers(name, pipe.send)
        self._running: dict[str, asyncio.Task[None]] = {}
        self._calls = RunningCalls()
        self._questions = HostQuestions(pipe.send)
        self._elicitation = Elicitation(self._questions, self._calls)
        self._sampling = Sampling(self._questions, self._calls)
        self._cancelled: set[str] = set()
        self._changed = asyncio.Event()
        self._serving: tuple[McpConnection, asyncio.TaskGroup] | None = None
        self._task: asyncio.Task[ServerError] | None = None
        """Serves until the server is lost."""

    async def run(self) -> None:
        """Serve until the host sends `shutdown` or closes our stdin.

        Raises:
            ServerError: the server could not be reached or was lost; continues "the MCP server NAME".
        """
        async with asyncio.TaskGroup() as group:
            serving = self._task = group.create_task(self._serve())
            reading = group.create_task(self._read())
            serving.add_done_callback(lambda _: reading.cancel())
        if not serving.cancelled():
            raise serving.result()
        self._pipe.send({"type": "shutdown_ack"})

    def leave(self) -> None:
        """End the connection, with patience for the server; the second time, without."""
        if self._task is not None:
            self._task.cancel()

    async def _serve(self) -> ServerError:
        """Serve until the server is lost; return the reason."""
        try:
            async with connected(
                self._server,
                self._place,
                access=self._access,
                asked=self._elicitation.ask,
                sampled=self._sampling.ask,
                notified=self._notified,
                room=self._pipe.room,
            ) as connection:
                await self._answer_calls(connection)
        except ServerError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                # What arrives while the package closes is an error to it; the bridge leaves, and the server is not to blame.
                raise asyncio.CancelledError from None
            return error

    async def _answer_calls(self, connection: McpConnection) -> NoReturn:
        """Answer calls until the server is lost, which ends all of them."""
        async with asyncio.TaskGroup() as calls:
            self._serving = connection, calls  # first: the host may call a tool while other lists are still read
            await self._offers.refresh(connection)
            if said := connection.client.instructions:
                self._pipe.send({"type": "instructions", "text": said[:INSTRUCTIONS_CHARS]})
            self._pipe.send({"type": "ready"})
            calls.create_task(self._follow_changes(connection))
            raise ServerError(await connection.lost)

    # --- from the host ----------------------------------------------------------------------------------------

    async def _read(self) -> None:
        async for frame in self._pipe.frames():
            if text(frame, "type") == "shutdown":
                break
            self._receive(frame)
        self.leave()
        await asyncio.sleep(LEAVE_S)
        self.leave()  # the second cancellation interrupts the closing of the connection

    def _receive(self, frame: Frame) -> None:
        call = text(frame, "id")
        match text(frame, "type"):
            case "tool_call":
                self._calls.begin(call, text(frame, "session_id"))
                self._begin(call, text(frame, "name"), frame.get("args"), text(frame, "traceparent"))
            case "command_invoked":
                self._begin_command(call, text(frame, "name"), text(frame, "args"))
            case "user_answer" | "model_answer":
                self._questions.answered(frame)
            case "event_intercept":
                self._begin_mentions(call, text(frame, "text"))
            case "tool_cancel" if call in self._running:
                self._cancelled.add(call)
                self._running[call].cancel()

    def _begin(self, call: str, name: str, args: object, traceparent: str) -> None:
        tool, of_resources = self._offers.tool(name), self._offers.resources.tool(name)
        if self._serving is None or (tool is None and of_resources is None):
            self._calls.end(call)
            self._pipe.send(tool_error(call, f"the MCP server {self._name} has no tool {name} now"))
            return
        connection, calls = self._serving
        # Where the conventions of MCP put it: https://modelcontextprotocol.io/specification, `_meta`.
        meta = {"traceparent": traceparent} if traceparent else {}
        given = args if isinstance(args, dict) else {}
        if tool is not None:
            answer = functools.partial(self._result, connection, call, tool, given, meta=meta)
        else:
            assert of_resources is not None
            answer = functools.partial(self._offers.resources.call, connection, call, of_resources, given)
        task = calls.create_task(self._call(connection, call, answer))
        self._running[call] = task
        task.add_done_callback(lambda _: self._forget(call))

    def _forget(self, call: str) -> None:
        self._running.pop(call, None)
        self._calls.end(call)
        self._questions.end(call)
        self._cancelled.discard(call)

    async def _result(
        self,
        connection: McpConnection,
        call: str,
        tool: Tool,
        args: dict[str, object],
        *,
        meta: Mapping[str, object],
    ) -> Frame:
        if needs_a_task(tool):
            task = ToolTask(
                connection,
                tool.name,
                pause_most_s=self._pause_most_s,
                begun=functools.partial(self._calls.become_task, call),
                told=functools.partial(self._told, call),
            )
            return tool_result(call, await task.call(args, {**meta, "progressToken": token_of(call)}))
        progress = functools.partial(self._progress, call)
        given: RequestParamsMeta | None = cast("RequestParamsMeta", meta) or None
        result = await connection.client.call_tool(tool.name, args, progress_callback=progress, meta=given)
        return tool_result(call, result)

    async def _call(self, connection: McpConnection, call: str, answer: Callable[[], Awaitable[Frame]]) -> None:
        """Send the answer to a call when it is there, or why there is none."""
        try:
            self._pipe.send(await answer())
        except asyncio.CancelledError:
            self._pipe.send(tool_error(call, "cancelled" if call in self._cancelled else LOST))
            raise
        except MCPError as error:
            is_lost = error.code == CONNECTION_CLOSED and error.message.startswith(PACKAGE_LOST)
            self._pipe.send(tool_error(call, LOST if is_lost else error.message))
            if is_lost and self._server.url:  # for a process, its exit gives a better reason
                connection.lose(CLOSED)
        except (RuntimeError, TimeoutError, ValueError) as error:
            # Invalid in MCP, not matching the tool's output schema, or over 4 MiB.
            self._pipe.send(tool_error(call, f"the MCP server's result cannot be used: {error}"))

    def _begin_command(self, key: str, name: str, line: str) -> None:
        prompt = self._offers.prompt(name)
        if self._serving is None or prompt is None:
            self._pipe.send(command_error(key, f"the MCP server {self._name} has no prompt {name} now"))
            return
        try:
            given = arguments(name, prompt, line)
        except MissingArgumentError as error:
            self._pipe.send(command_error(key, str(error)))
            return
        connection, calls = self._serving
        beside = "" if prompt.arguments else line
        calls.create_task(self._prompt(connection, key, prompt, given, beside=beside))

    async def _prompt(
        self, connection: McpConnection, key: str, prompt: Prompt, given: dict[str, str], *, beside: str
    ) -> None:
        try:
            async with asyncio.timeout(PROMPT_S):
                result = await connection.client.get_prompt(prompt.name, given)
            self._pipe.send(command_response(key, result, beside=beside))
        except asyncio.CancelledError:
            self._pipe.send(command_error(key, "the MCP server was lost"))
            raise
        except TimeoutError:
            self._pipe.send(command_error(key, f"the MCP server did not answer within {PROMPT_S:.0f} s"))
        except (MCPError, RuntimeError, ValueError) as error:
            self._pipe.send(command_error(key, f"the MCP server has not given the prompt: {error}"))

    def _begin_mentions(self, key: str, prompt: str) -> None:
        uris = self._offers.resources.mentions(prompt)
        if self._serving is None or not uris:
            self._pipe.send({"type": "event_intercept_response", "id": key})
            return
        connection, calls = self._serving
        calls.create_task(self._mentions(connection, key, uris))

    async def _mentions(self, connection: McpConnection, key: str, uris: list[str]) -> None:
        said = ""
        try:
            said = await self._offers.resources.mentioned(connection, uris)
        finally:
            self._pipe.send({"type": "event_intercept_response", "id": key, "context": said})

    # --- from the server --------------------------------------------------------------------------------------

    async def _progress(self, call: str, progress: float, total: float | None, message: str | None) -> None:
        self._told(call, progress_text(progress, total, message))

    def _told(self, call: str, words: str) -> None:
        self._pipe.send({"type": "tool_progress", "id": call, "text": words})

    async def _notified(self, message: IncomingMessage) -> None:
        if isinstance(message, LIST_CHANGED):
            self._changed.set()
        elif isinstance(message, ProgressNotification):  # of a call that is a task: its request was answered at once
            found = message.params
            if (call := self._calls.reporting(found.progress_token)) is not None:
                await self._progress(call, found.progress, found.total, found.message)

    async def _follow_changes(self, connection: McpConnection) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            try:
                await self._offers.refresh(connection)
            except (MCPError, TimeoutError, ValueError) as error:
                # The old list stays registered; the server reports its next change again.
                log.warning("the server's new list of tools could not be read: %s", error)
