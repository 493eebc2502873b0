"""Tools that extensions have the host run: judged and run as the model's own calls are.

    ToolRequest ──> such a tool? ──> authorization ──> on record, unless it is safe ──> the tool ──> answer

It runs beside the session's run, if there is one, and changes nothing of what the model sees. What is recorded and why
stands in `docs/decisions/0009-nested-calls.md`.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Mapping
from functools import partial

from msgspec.structs import replace

from zotd import ids
from zotd.clock import rfc3339
from zotd.contributions.guards import noted
from zotd.contributions.toolbox import Toolbox
from zotd.contributions.view import Extensions
from zotd.core import records
from zotd.core.ports import Replay, StorageError, Tool, ToolContext, ToolOutcome
from zotd.core.run_watch import NestedCall, RunWatch
from zotd.exthost.requests import ToolRequest
from zotd.exthost.tools import ExtensionTool
from zotd.ledger.ledger import Shown
from zotd.runs.tool_calls import operation_key
from zotd.sessions.planner import Planner
from zotd.sessions.session import Session
from zotd.wire.errors import CommandError

log = logging.getLogger(__name__)

DEPTH = 4
"""Tools in a chain, the first one counted: the model calls a tool, whose extension calls the next, and so on."""

GIVEN_UP = "stopped, because its caller is gone; changes that it had already made remain"


class RefusedError(Exception):
    """A call that is not made; the message tells the extension why."""


class NestedCalls:
    """Runs tools for extensions."""

    def __init__(
        self,
        planner: Planner,
        *,
        session: Callable[[str], Session | None],
        spawn: Callable[[str, Coroutine[object, object, None]], None],
        limit_s: float,
    ) -> None:
        """`session` finds a session in memory; `spawn` starts a named task that outlives its caller.

        `limit_s`: longest a call may take, with the guards, and also if its tool is interactive.
        """
        self._planner = planner
        self._session = session
        self._spawn = spawn
        self._limit_s = limit_s
        self.count = 0
        """How many calls have not been answered yet."""
        self._ended: Callable[[], None] = lambda: None

    def watch_end(self, ended: Callable[[], None]) -> None:
        """Call `ended` whenever the last call was answered."""
        self._ended = ended

    def begin(self, request: ToolRequest) -> None:
        """Run the tool, and answer; returns at once."""
        self.count += 1
        self._spawn(f"{request.name} for {request.extension}", self._counted(request))

    async def _counted(self, request: ToolRequest) -> None:
        try:
            await self._serve(request)
        finally:
            self.count -= 1
            if not self.count:
                self._ended()

    async def _serve(self, request: ToolRequest) -> None:
        async with asyncio.TaskGroup() as tasks:
            work = tasks.create_task(self._run(request), name=f"nested call of {request.name}")
            request.given_up.add_done_callback(lambda _: work.cancel())
        request.answer(ToolOutcome.error(GIVEN_UP) if work.cancelled() else work.result())

    async def _run(self, request: ToolRequest) -> ToolOutcome:
        try:
            # Ends with the tool, the time, or the request, whose end cancels the task.
            async with asyncio.timeout(self._limit_s):
                return await self._call(request)
        except TimeoutError:
            return ToolOutcome.error(f"{request.name} did not end within {self._limit_s:g} s and was stopped")
        except RefusedError as refused:
            return ToolOutcome.error(str(refused))
        except CommandError as refused:
            return ToolOutcome.error(f"{request.name} was not run: {refused.sentence}")
        except StorageError as error:
            return ToolOutcome.error(f"{request.name} was not run, because the journal cannot be written: {error}")
        except Exception:  # a tool's fault must cost this call only
            log.exception("tool %s failed for %s", request.name, request.extension)
            return ToolOutcome.error(f"{request.name} failed inside zot; see the daemon's log")

    async def _call(self, request: ToolRequest) -> ToolOutcome:
        session, extensions = self._find(request)
        await session.load()
        tool = _choose(extensions.toolbox(session.ledger.row.settings), request, extensions.resolution.absent)
        key = ids.new("c")
        authorization = await self._planner.authorization(session, partial(extensions.hooks, streams=False))
        verdict = await authorization.clear(key, tool, request.args)
        self._find(request)  # the session may have left memory meanwhile
        shown = noted(verdict.notes)
        operation = operation_key(tool)
        is_recorded = not verdict.is_blocked and tool.replay is not Replay.SAFE
        if is_recorded:
            shown.append(Shown(_started(session, request, tool, key=key, args=verdict.value, operation=operation)))
        if shown:
            await session.ledger.write(shown, durable=is_recorded)
        if verdict.is_blocked:
            return ToolOutcome.error(verdict.reason)
        make = await self._planner.tool_context(session)
        context = replace(
            make(key, request.progress),
            jail=verdict.jail,
            web=partial(authorization.web, key, request.name),
            lineage=request.lineage,
            operation_key=operation,
        )
        outcome = await _watched(session.watch, tool, verdict.value, context, extension=request.extension)
        return await authorization.beyond(key, verdict.value, outcome) if outcome.closed else outcome

    def _find(self, request: ToolRequest) -> tuple[Session, Extensions]:
        session = self._session(request.session)
        if session is None or session.extensions is None:
            raise RefusedError(f"the session {request.session} is no longer open")
        return session, session.extensions


async def _watched(
    watch: RunWatch, tool: Tool, args: Mapping[str, object], context: ToolContext, *, extension: str
) -> ToolOutcome:
    """Run the tool, and tell `watch` about it, however it ends."""
    began, is_error = time.monotonic(), True
    try:
        outcome = await tool.run(args, context)
        is_error = outcome.is_error
        return outcome
    finally:
        took_s, within = time.monotonic() - began, context.lineage[0].call_id if context.lineage else ""
        watch.nested(NestedCall(context.call_id, tool.spec.name, extension, within, time.time(), took_s, is_error))


def _choose(toolbox: Toolbox, request: ToolRequest, absent: Callable[[str], str]) -> Tool:
    """The tool, if an extension may call it from here. `absent`: see `Plan`."""
    name, chain = request.name, [ancestor.tool for ancestor in request.lineage]
    if name in chain:
        raise RefusedError(f"{name} must not call itself: {' > '.join([*chain, name])}")
    if len(chain) >= DEPTH:
        raise RefusedError(
            f"{name} is not called: the chain of calls is too long: {' > '.join(chain)} have called each other"
        )
    if name in toolbox.hidden:
        raise RefusedError(f"{name} is deferred: a tool must activate it before it can be called")
    tool = toolbox.tools.get(name)
    if tool is None:
        there = ", ".join(sorted(toolbox.tools)) or "none"
        reason = absent(name) or f'unknown tool "{name[:80]}"'
        raise RefusedError(f"{reason}; the tools here are: {there}")
    if isinstance(tool, ExtensionTool) and tool.exposure == "model-only":
        raise RefusedError(f"only the model can call {name}")
    return tool


def _started(
    session: Session, request: ToolRequest, tool: Tool, *, key: str, args: dict[str, object], operation: str | None
) -> records.CallStarted:
    return records.CallStarted(
        time=rfc3339(),
        run=session.ledger.transcript.run or "",
        call_id=key,
        name=request.name,
        args=args,
        replay=tool.replay,
        operation_key=operation,
        within=request.lineage[0].call_id if request.lineage else None,
    )
