"""Subagents: sessions that do a task for another session (`docs/subagents.md`).

    call of `task` ──> a place ──> the session with the call's key: made, or found ──> its run ──> its last answer

A subagent is a session like any other, which names its parent. The key of its session is made of the call, so that a call that is
repeated after a crash finds what it has begun: an answer that is there is given again, and a run that was cut goes on. A subagent
works only while the call waits for it: an abort of the call aborts it.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, ExitStack, suppress
from functools import partial

from msgspec.structs import replace

from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.ports import NAME_CHARS, SessionRow, StorageError, ToolContext, ToolOutcome
from zotd.core.subagents import TaskOrder, session_of
from zotd.ledger.ledger import Shown
from zotd.permissions.pending import lasting
from zotd.runs.queue import SubmitRequest
from zotd.sessions.agent_types import AgentTypes, limit_by
from zotd.sessions.bubbling import bubbling
from zotd.sessions.closing import STOP_S
from zotd.sessions.manager import Manager
from zotd.sessions.narrowing import keeping_narrow
from zotd.sessions.session import Session
from zotd.sessions.task_answers import answer_of, bounded
from zotd.sessions.task_places import TaskPlaces
from zotd.sessions.task_progress import TaskProgress
from zotd.sessions.task_settings import child_settings
from zotd.store.families import sessions_below
from zotd.wire.api import Started
from zotd.wire.content import Tokens
from zotd.wire.errors import Code, CommandError
from zotd.wire.families import SessionParent
from zotd.workspace.agent_files import AgentType
from zotd.workspace.environment import Environment

SENDER = "task"
"""Who has sent the prompt of a subagent, for people."""

TASK_OVER = "ended with the task of its subagent"
"""Why a job ended."""

WAITS = "waits: {count} subagents of this level work already\n"

TOO_MANY = (
    "this run has begun {limit} subagents, and may not begin more (agents.per_run in config.toml): do the rest yourself, or tell "
    "the user what is left"
)

log = logging.getLogger(__name__)


class _Waiting:
    """What a call waits for: a place, and then its subagent."""

    def __init__(self, manager: Manager) -> None:
        self.child: Session | None = None
        self._manager = manager

    def can_last(self) -> bool:
        """Whether the next daemon could go on with it as it is: nothing was begun, or what was begun can be resumed."""
        return self._manager.is_stopping if self.child is None else _can_last(self.child)


class Subagents:
    """Runs the subagents of all sessions."""

    def __init__(self, manager: Manager) -> None:
        self._manager = manager
        self._places = TaskPlaces()
        self._types = AgentTypes(manager.planner)
        self._above: dict[str, Session] = {}
        """The parents of subagents that work, by the ids of these."""
        self._spent: dict[str, dict[str, Tokens]] = {}
        """What each subagent of a parent has spent, by their ids; of parents whose subagents work."""

    async def run(self, parent: Session, order: TaskOrder, context: ToolContext) -> ToolOutcome:
        """Have a subagent do the task, or go on with it; returns its last answer. Cancelled, it aborts the subagent."""
        if (refusal := self.refusal(parent, context.call_id)) is not None:
            return refusal
        waiting = _Waiting(self._manager)
        try:
            with parent.children.wait_for(context.call_id, waiting.can_last):
                async with self.place(parent, context.progress):
                    waiting.child = child = await self.child_of(parent, order, context)
                    return await self.work(parent, child, order, context)
        except (CommandError, StorageError) as error:
            return unable(error)

    def refusal(self, parent: Session, call: str) -> ToolOutcome | None:
        """Count a subagent that this call begins, or goes on with; the result of the call if there may be no more."""
        limit = self._manager.config.value.agents.per_run
        if parent.children.admit(parent.ledger.transcript.run, call, limit):
            return None
        return ToolOutcome.error(TOO_MANY.format(limit=limit))

    def place(self, parent: Session, tell: Callable[[str], None]) -> AbstractAsyncContextManager[None]:
        """Wait for a place for a subagent of this session; `tell` is told if none is free."""
        limit = self._manager.config.value.agents.at_once
        waits = partial(tell, WAITS.format(count=limit))
        return self._places.place(self._root(parent), _depth_below(parent), limit, waits)

    def _root(self, session: Session) -> str:
        while (above := self._above.get(session.id)) is not None:
            session = above
        return session.id

    # --- the session ------------------------------------------------------------------------------------------

    async def child_of(self, parent: Session, order: TaskOrder, context: ToolContext) -> Session:
        """Return the session that this call begins, or has begun before a restart. Raises CommandError, StorageError."""
        key = session_of(context.call_id)
        try:
            child = await self._manager.get(key)
        except CommandError as error:
            if error.code is not Code.NOT_FOUND:
                raise
            child = await self._begin(parent, order, context)
        found = child.ledger.row.parent
        if found is None or (found.session, found.call) != (parent.id, context.call_id):
            raise CommandError(Code.CONFLICT, f"the session {key} is there already, and is none of this call")
        await child.load()
        # After a restart, keys that a client has brought are known there only.
        child.use_environment(_environment(parent, child.ledger.row.settings))
        return child

    async def _begin(self, parent: Session, order: TaskOrder, context: ToolContext) -> Session:
        above = parent.ledger.row
        limits, kind = self._manager.config.value.agents, await self._type(parent, order)
        settings = child_settings(above.settings, order, kind, self._manager.models, max_steps=limits.max_steps)
        now = rfc3339()
        row = SessionRow(
            session_of(context.call_id),
            " ".join(order.description.split())[:NAME_CHARS],
            above.cwd,
            now,
            now,
            settings,
            "idle",
            granted=above.granted,
            parent=SessionParent(above.id, context.call_id, _depth_below(parent), order.agent),
            user=above.user,
        )
        environment = _environment(parent, settings)
        self._manager.models.check(settings, environment)
        return await self._manager.begin(row, environment)

    async def _type(self, parent: Session, order: TaskOrder) -> AgentType | None:
        return await self._types.find(parent, order.agent) if order.agent else None

    # --- its work ---------------------------------------------------------------------------------------------

    async def work(self, parent: Session, child: Session, order: TaskOrder, context: ToolContext) -> ToolOutcome:
        """Have the subagent do the task, or go on with it; returns its answer. Cancelled, it aborts the subagent.

        Raises CommandError, StorageError.
        """
        with ExitStack() as stack:
            stack.enter_context(self._manager.planner.spending.below(child.id, lambda: parent.ledger.row))
            await self._count(parent, child)
            stack.callback(self._uncount, child)
            stack.enter_context(bubbling(child, parent, lambda session: self._above.get(session.id)))
            stack.enter_context(keeping_narrow(child, parent))
            progress = TaskProgress(child, context.progress)
            for watcher in (partial(self._committed, child), progress.committed):
                child.ledger.watchers.append(watcher)
                stack.callback(child.ledger.watchers.remove, watcher)
            progress.begun()
            try:
                await self._go(parent, child, order, context)
                await child.work.stopped()
            except asyncio.CancelledError:
                await self._abort(child)
                raise
            finally:
                if not self._manager.is_stopping:
                    await child.jobs.end_all(TASK_OVER)  # nobody would look after them
            if child.ledger.transcript.interrupted and self._manager.is_stopping:
                # The run was drained. The next daemon repeats this call, which has no outcome until then.
                await asyncio.Event().wait()
        return await bounded(await answer_of(child), context)

    async def _go(self, parent: Session, child: Session, order: TaskOrder, context: ToolContext) -> None:
        """Give the subagent its prompt, or have it go on with what was cut."""
        above = parent.ledger.transcript
        request = SubmitRequest(id=context.call_id, unattended=above.unattended)
        transcript = child.ledger.transcript
        known = request.known(transcript)
        try:
            if known is None:
                allowed = limit_by(await self._type(parent, order), above.allowed_tools)
                request = replace(request, allowed_tools=allowed)
                await child.prompt(
                    order.prompt, (), sender=SENDER, when_busy="queue", accepted=_unheard, request=request
                )
            elif not child.work.is_active and (transcript.interrupted or known.input in transcript.waiting):
                await child.go_on(accepted=_unheard)
        except CommandError as error:
            if error.code is not Code.SHUTTING_DOWN:
                raise
            await asyncio.Event().wait()  # as above: the next daemon begins it

    async def _abort(self, child: Session) -> None:
        """End the run of the subagent, unless the process ends: then the next one goes on with it."""
        if self._manager.is_stopping:
            return
        child.abort()
        with suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await child.work.stopped()

    # --- what it spends ---------------------------------------------------------------------------------------

    async def _count(self, parent: Session, child: Session) -> None:
        """Begin to count what the subagent spends as spent by its parent."""
        if parent.id not in self._spent:
            journal = self._manager.journal
            rows = [] if journal is None else await sessions_below(journal, parent.id)
            self._spent.setdefault(parent.id, {row.id: row.spent + row.spent_below for row in rows})
        self._above[child.id] = parent
        self._charge(child)

    def _uncount(self, child: Session) -> None:
        parent = self._above.pop(child.id)
        if parent not in self._above.values():
            del self._spent[parent.id]

    def _committed(self, child: Session, items: "list[Shown]") -> None:
        if any(isinstance(item.record, records.UsageRow) for item in items):
            self._charge(child)

    def _charge(self, child: Session) -> None:
        """Tell the parent, and those above it, what has been spent below them."""
        while (parent := self._above.get(child.id)) is not None:
            row, spent = child.ledger.row, self._spent[parent.id]
            spent[child.id] = row.spent + row.spent_below
            below = sum(spent.values(), Tokens())
            if below != parent.ledger.row.spent_below:
                with suppress(StorageError):  # the sum is made anew when the call is repeated
                    parent.ledger.defer([], spent_below=below)
            child = parent


def unable(error: CommandError | StorageError) -> ToolOutcome:
    """Return what the model is told of a subagent that cannot work."""
    if isinstance(error, CommandError):
        return ToolOutcome.error(f"the subagent could not work: {error.sentence}")
    return ToolOutcome.error(f"the subagent could not work, because the journal cannot be used: {error}")


def _depth_below(parent: Session) -> int:
    above = parent.ledger.row.parent
    return 1 if above is None else above.depth + 1


def _environment(parent: Session, settings: records.Settings) -> Environment:
    """Return the environment of a subagent with these settings: a key that was given for one place must not reach another."""
    above = parent.ledger.row.settings
    is_same_place = (settings.provider, settings.base_url) == (above.provider, above.base_url)
    return parent.environment if is_same_place else parent.environment.without_own_key()


def _can_last(child: Session) -> bool:
    """Whether the subagent waits for a person, also one below it, or its run was cut where it can be resumed."""
    stored = lasting(child.ledger.transcript)
    is_asking = any(one.approval in stored for one in child.approvals.pending())
    return is_asking or child.ledger.transcript.interrupted or child.children.outlasts


def _unheard(_: Started) -> None:
    """The call waits for the end of the run, not for its beginning."""
