"""All sessions of one process: creates them, finds them, loads them from the journal, lets them go.

A session is in memory while a client follows it or something of it runs, and for `session_unload_s` longer.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from functools import partial

from msgspec import structs

from zotd.config.current import CurrentConfig
from zotd.core import records
from zotd.core.ports import Journal, SessionRow
from zotd.core.transcript import Transcript
from zotd.ledger.ledger import Ledger, Shown
from zotd.sessions.announcements import added, removed, updated
from zotd.sessions.closing import CLOSED, STOP_S, Closing
from zotd.sessions.extension_pool import LINGER_S, PoolListener
from zotd.sessions.file_commands import FileCommands
from zotd.sessions.info import describe
from zotd.sessions.job_wake import may_wake, wake
from zotd.sessions.models import ModelChooser
from zotd.sessions.nested_calls import NestedCalls
from zotd.sessions.opening import SessionOpening, taken
from zotd.sessions.planner import Planner
from zotd.sessions.recent_models import RecentModels
from zotd.sessions.session import Session
from zotd.sessions.session_limits import limit_of, store_within
from zotd.sessions.shared_directory import SharedDirectoryWarning
from zotd.sessions.slash_commands import Commands
from zotd.sessions.storage_recovery import StorageRecovery, repair
from zotd.sessions.usable_skills import usable_skills
from zotd.store.families import sessions_below
from zotd.store.journal import StoredJournal
from zotd.store.memory import Memory
from zotd.store.queries import PageQuery
from zotd.wire import events
from zotd.wire.api import SessionInfo
from zotd.workspace.environment import Environment, split

STOPPED = "ended because zot has stopped"
"""Why jobs ended, as the model reads it."""

MIN_STAY_S = 60.0
"""Shortest time in memory after a command: while the command reads the journal (30 s at most), a second copy of the
session would be loaded beside this one, and both would write."""

LOOK_S = 1.0
"""How old what is known of the spending of a session's user may be when a command comes. Each request looks again."""

Spawn = Callable[[str, Coroutine[object, object, None]], None]


class Manager:
    """Owns the sessions."""

    def __init__(
        self,
        *,
        journal: StoredJournal | None,
        models: ModelChooser,
        planner: Planner,
        spawn: Spawn,
        config: CurrentConfig,
        environment: Mapping[str, str],
        addressed: bool,
    ) -> None:
        """`journal`: None when every session is ephemeral. `spawn` starts a named task that outlives its caller.

        `config`: the configuration that holds now. `environment`: of this process, for stored sessions whose client has
        not sent its own. `addressed`: events carry `session` and `seq`; False on stdio, where prompts are also answered
        when they start.
        """
        self.models = models
        self.recent_models = RecentModels(models, journal)
        """The models used last."""
        self.extension_pool = extension_pool = planner.extension_pool
        """The extensions of all sessions."""
        self.commands = Commands(self.extension_pool, FileCommands(planner, config), spawn, planner.other_agents)
        """Slash commands."""
        self.skills = partial(usable_skills, planner)
        """Those that a session's model may use."""
        self.rules = planner.rules
        """The permission rules of all sessions."""
        self.journal = journal
        """Where sessions are stored."""
        self.planner = planner
        """Prepares what runs and commands work with."""
        self._spawn = spawn
        self.config = config
        """The configuration that holds now."""
        self._environment = environment
        self._addressed = addressed
        self._sessions: dict[str, Session] = {}
        self.is_loaded = self._sessions.__contains__
        """Whether the session with this id is in memory."""
        self._opening, self._closing = SessionOpening(), Closing(self._sessions.get)
        self.is_stopping = False
        """The process ends, so no session starts anything."""
        self._blocked = (
            StorageRecovery(journal, current=self._sessions.get, spawn=spawn, changed=self._changed, moved=self._forget)
            if journal
            else None
        )
        self.nested = NestedCalls(
            planner, session=self._sessions.get, spawn=spawn, limit_s=extension_pool.limits.tool_s
        )
        """Calls that extensions have made."""
        extension_pool.connect(PoolListener(self._tell, self.nested.begin, self.commands.submitted))
        self._unloads: dict[str, asyncio.TimerHandle] = {}
        self._discarding: set[str] = set()
        """Sessions that are deleted if they were never used."""
        self._listeners: dict[Callable[[events.Event], None], None] = {}

    @property
    def loaded(self) -> list[Session]:
        """The sessions in memory."""
        return list(self._sessions.values())

    def listen(self, listener: Callable[[events.Event], None]) -> Callable[[], None]:
        """Tell `listener` of sessions that come, change and go; call the result to stop."""
        self._listeners[listener] = None
        return lambda: self._listeners.pop(listener, None)

    # --- finding ------------------------------------------------------------------------------------------------

    async def get(self, session_id: str, *, is_new: bool = False) -> Session:
        """A session by id, read from the journal when it is not in memory; raises CommandError if there is none.

        `is_new`: it was put into the journal whole, so everybody hears of it.
        """
        await self._closing.over(session_id)
        found = self._sessions.get(session_id)
        if found is not None and found.ledger.failure is not None and self._blocked is not None:
            await self._blocked.try_now(found)
            found = self._sessions.get(session_id)  # it may have been let go meanwhile
        if found is None:
            async with self._opening.turn(session_id):
                found = self._sessions.get(session_id) or await self._opened(session_id)
        if found.is_cut:
            await repair(found)  # a crash cut something off, or inputs wait: say so before anybody looks
        await found.approvals.expire()
        self._stay(found)  # now: it could leave memory during the look
        if user := found.ledger.row.user:
            await self.planner.spending.look(user, within_s=LOOK_S)
        if is_new:
            self._tell(added(found))
        return found

    async def page(self, wanted: PageQuery) -> tuple[list[SessionInfo], str | None]:
        """Sessions, newest first, and what to pass as `before` for the next page."""
        if self.journal is None:
            return [self.info(session) for session in self.loaded], None
        rows, cursor = await self.journal.page(wanted)
        infos = await self._row_infos(rows)
        if wanted.before is None:
            ephemeral = (session for session in self.loaded if session.ephemeral)
            infos = [self.info(one) for one in ephemeral if wanted.concerns(one.ledger.row)] + infos
        return infos, cursor

    def info(self, session: Session) -> SessionInfo:
        """A session in memory, as lists and snapshots show it."""
        row, followers, writing = session.ledger.row, session.ledger.followers, session.work.written
        found = describe(
            row,
            session.state,
            followers,
            ephemeral=session.ephemeral,
            writing=writing,
            waiting=session.work.waiting,
            fallback=session.ledger.transcript.fallback.label,
        )
        return structs.replace(found, jail=session.jail.status)

    async def find(self, text: str) -> list[SessionInfo]:
        """Sessions with this id or name, or with an id that begins so."""
        if text in self._sessions:
            return [self.info(self._sessions[text])]
        return await self._row_infos(await self.journal.find(text) if self.journal else [])

    # --- coming and going -----------------------------------------------------------------------------------------

    async def begin(
        self, row: SessionRow, environment: Environment, *, ephemeral: bool = False, discards: bool = False
    ) -> Session:
        """A new session with this row; `discards`: it is deleted if it was never used.

        Raises StorageError when the journal cannot write, and CommandError when its user may have no such session.
        """
        ephemeral = ephemeral or self.journal is None
        record = records.ConfigRecord(time=row.created, settings=row.settings, name=row.name)
        limit = limit_of(self.config.value, row, ephemeral=ephemeral)
        if limit is not None and self.journal is not None:
            await store_within(self.journal, row, record, limit)
            session = await self.get(row.id)
            session.use_environment(environment)
        else:
            session = await self._begun(row, record, environment, ephemeral=ephemeral)
        if discards:
            self._discarding.add(session.id)
        self.extension_pool.join(session)
        self._tell(added(session))
        self._stay(session)
        return session

    def environment(self, env: Mapping[str, str] | None, api_key: str | None) -> Environment:
        """A client's environment, with its keys held apart; this process's own when it sent none."""
        found = split(self._environment if env is None else env, self.models.catalog.key_variables(), api_key)
        # This process's own keys come last, after those of `auth.json`; `sessions.models` looks for them there.
        return replace(found, keys={}) if env is None else found

    def settle(self, session: Session) -> None:
        """Check whether the session is still needed; call it when a client has left."""
        timer = self._unloads.pop(session.id, None)
        if timer is not None:
            timer.cancel()
        if session.ephemeral and not (session.work.early.ended.is_set() or session.ledger.followers or session.holders):
            session.work.early.cancel()  # nothing will use it
        if self.journal is None or self._sessions.get(session.id) is not session or self._is_needed(session):
            return
        if session.ephemeral:
            self._forget(session)
            self._tell(removed(session))
        else:
            # A run may begin dozens of subagents, and few of them are looked at.
            is_brief = self._is_unused(session) or session.ledger.row.parent is not None
            delay_s = MIN_STAY_S if is_brief else max(self.config.value.limits.session_unload_s, MIN_STAY_S)
            self._unloads[session.id] = asyncio.get_running_loop().call_later(LINGER_S, self._rest, session, delay_s)

    async def close(self, session: Session) -> None:
        """Abort what runs, and unload the session if no client follows it; an ephemeral one is deleted."""
        async with self._closing.alone(session):
            if session.ephemeral or not session.ledger.followers:  # else the followers would hear of nothing any more
                self.give_up(session)
        self._tell(removed(session) if session.ephemeral else updated(session))

    def give_up(self, session: Session) -> None:
        """Let it go; another daemon may have it then."""
        self._forget(session)
        if self.journal is not None and not session.ephemeral:
            self.journal.ownership.release(session.id)

    async def delete(self, session: Session) -> None:
        """Remove the session and everything that it recorded, with its subagents."""
        async with self._closing.alone(session):
            stored = None if session.ephemeral else self.journal
            for row in [] if stored is None else await sessions_below(stored, session.id):
                await self.delete(await self.get(row.id))  # first: without its parent it would be in no list
            await session.jobs.end_all(CLOSED, kept=True)
            self._forget(session)
            if stored is not None:
                await stored.delete(session.id)
                session.checkpoints.forget()
        self._tell(removed(session))

    async def stop(self) -> None:
        """Abort every run and wait for them to end, at most `STOP_S`; then end every extension, in at most 3.3 s."""
        self.is_stopping = True
        for session in self.loaded:
            session.abort(for_good=True)
        try:
            async with asyncio.timeout(STOP_S):
                for session in self.loaded:
                    await session.stopped()
        except TimeoutError:
            pass  # what is left is cancelled with its task; the journal repairs it at the next start
        async with asyncio.TaskGroup() as group:
            for session in self.loaded:
                group.create_task(session.jobs.end_all(STOPPED, tasks=False), name=f"jobs of {session.id}")
                group.create_task(session.checkpoints.settle(), name=f"files of {session.id}")
        for session in self.loaded:
            session.jail.close()
            session.checkpoints.close()
        for timer in self._unloads.values():
            timer.cancel()
        await self.planner.other_agents.stop()
        await self.extension_pool.stop()

    # --- inside -----------------------------------------------------------------------------------------------------

    async def _begun(
        self, row: SessionRow, record: records.ConfigRecord, environment: Environment, *, ephemeral: bool
    ) -> Session:
        journal = None if ephemeral else self.journal
        session = self._open(row, journal or Memory(keeps=self._addressed), environment, ephemeral=ephemeral)
        try:
            await session.ledger.write([Shown(record)], durable=True)
        except BaseException:
            self._forget(session)
            raise
        self._watch(session)
        return session

    async def _opened(self, session_id: str) -> Session:
        """Return a session of the journal, which is in memory then; raises CommandError like `taken`."""
        row = await taken(self.journal, session_id)
        assert self.journal is not None
        environment = split(self._environment, self.models.catalog.key_variables(), None)
        found = self._open(row, self.journal, environment, ephemeral=False)
        self._watch(found)
        return found

    def _open(self, row: SessionRow, journal: Journal, environment: Environment, *, ephemeral: bool) -> Session:
        ledger = Ledger(row, journal, Transcript(), addressed=self._addressed)
        session = Session(
            ledger,
            environment,
            self.planner,
            spawn=self._spawn,
            changed=self._changed,
            stored_queue=self._addressed,
            ephemeral=ephemeral,
        )
        if self.journal is not None:  # without one, this process has no other sessions
            ledger.watchers.append(SharedDirectoryWarning(session, self._sessions.values).committed)
        if self.is_stopping:
            session.work.refuse_jobs()
        self._sessions[row.id] = session
        return session

    def _watch(self, session: Session) -> None:
        """Have it brought back when the journal could not write; one that is not stored never fails so."""
        if self._blocked is not None and not session.ephemeral:
            session.ledger.failure_watchers.append(partial(self._blocked.add, session))

    def _changed(self, session: Session) -> None:
        if self._listeners:
            self._tell(updated(session))
        if session.ledger.transcript.job_news and not self.is_stopping and may_wake(session) and session.jobs.wakes():
            self._spawn(f"a run for a job of {session.id}", wake(session))
        self.settle(session)

    def _is_needed(self, session: Session) -> bool:
        works = session.work.is_active or not session.work.early.ended.is_set() or session.side.is_asking
        has_jobs = session.jobs.running and not session.ephemeral  # that one ends with its last client
        return bool(session.ledger.followers or session.holders or works or session.approvals.is_due or has_jobs)

    def _stay(self, session: Session) -> None:
        """Begin the time anew after which a stored session leaves memory: a command is about it."""
        if not session.ephemeral:
            self.settle(session)

    def _rest(self, session: Session, delay_s: float) -> None:
        """Stop the extensions that only this session uses, and unload it later."""
        if self._is_needed(session):
            return
        if session.ledger.row.settings.extensions:
            self.extension_pool.leave(session)
        later = asyncio.get_running_loop().call_later(max(0.0, delay_s - LINGER_S), self._unload, session)
        self._unloads[session.id] = later

    def _unload(self, session: Session) -> None:
        if self._is_needed(session):
            return
        if self._is_unused(session) and session.ledger.failure is None:
            self._spawn(f"deletion of the unused {session.id}", self.delete(session))
        else:
            self.give_up(session)

    def _is_unused(self, session: Session) -> bool:
        row = session.ledger.row
        return session.id in self._discarding and not row.messages and not row.name

    def _forget(self, session: Session) -> None:
        self.extension_pool.leave(session)
        self.planner.forget(session)
        timer = self._unloads.pop(session.id, None)
        if timer is not None:
            timer.cancel()  # it holds the session, for half an hour
        self._discarding.discard(session.id)
        if self._sessions.get(session.id) is session:
            del self._sessions[session.id]
        for run in session.jobs.running.values():
            run.leave()
        if session.jobs.running:  # of an ephemeral one
            self._spawn(f"end of the jobs of {session.id}", session.jobs.end_all(CLOSED))
        session.jail.close()
        session.checkpoints.close()
        session.ledger.let_go()

    async def _row_infos(self, rows: Sequence[SessionRow]) -> list[SessionInfo]:
        assert self.journal is not None or not rows
        others = [row.id for row in rows if row.id not in self._sessions]
        daemons = await self.journal.ownership.elsewhere(others) if self.journal and others else {}
        return [self._row_info(row, daemons.get(row.id, "")) for row in rows]

    def _row_info(self, row: SessionRow, daemon: str) -> SessionInfo:
        session = self._sessions.get(row.id)
        if session:
            return self.info(session)
        is_damaged = self.journal is not None and self.journal.damage(row.id) is not None
        # Without a daemon that has it, it was interrupted by a crash, and not loaded since.
        state = "held" if row.state == "running" and not daemon else row.state
        return structs.replace(describe(row, "blocked" if is_damaged else state, 0), daemon=daemon)

    def _tell(self, event: events.Event) -> None:
        for listener in list(self._listeners):
            listener(event)
