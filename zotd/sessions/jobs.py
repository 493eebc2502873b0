"""The jobs of one session: commands that run in the background, until they end or the session does.

    bash background ──> on record ──> its process runs ─┬─> ends, or is stopped ──> on record ──> clients and the model are told
                                                        └─> the daemon is killed ──> the next one: on record as interrupted

The model is told with its next request, whether a run goes on or not (`core.transcript.Transcript.job_news`). The session's row has
its jobs, so that a restart finds those that were cut without reading records.
"""

import asyncio
import os
from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from zotd.clock import rfc3339
from zotd.config.sections import JobsSection
from zotd.core import records
from zotd.core.jobs import BY_MODEL, NOT_STARTED, JobError, JobOrder, MovableCommand, end_note, state_of, title_of
from zotd.core.output_pattern import LineFinder, PatternError
from zotd.ledger.ledger import Ledger, Shown
from zotd.process.orphan_reaper import OrphanReaper
from zotd.sessions.job_ground import JobGround
from zotd.wire import events
from zotd.wire.jobs import COMMAND_CHARS, ENDED, INTERRUPTED, RUNNING, JobInfo

TYPE_CHECKING = False  # as `typing` has it: loaded with the first job, which few sessions have
if TYPE_CHECKING:
    from zotd.sessions.background_task import TaskWork
    from zotd.sessions.job_ports import JobPorts
    from zotd.sessions.job_run import JobOutput, JobRun

KEPT = 16
"""Number of jobs that do not run any more and can still be asked about."""

END_S = 5.0
"""Longest wait for a job to end that was stopped; SIGKILL comes after a second."""

BEGUN = (
    "{title} runs in the background. You are told when it ends; job_output gives what it prints, job_wait waits for a line of that"
    " or for its end, job_stop ends it. All that it starts ends with it, and {end}."
)

WITH_SESSION, STAYS = "it ends with the session", "it goes on when the session ends or zot is stopped"

BEGUN_TASK = (
    "{title} works in the background. You are told its answer when it has one; job_output shows how far it is, job_wait waits for its"
    " end, job_stop aborts it."
)

NOTHING_NEW = "[nothing new]\n"

NO_COMMAND = "no command of the model runs that could go on in the background"

WHICH = "several commands run: name the call ({calls})"

TOO_LATE = "the command has just ended"

UNKNOWN = 'there is no job "{job}"; {there}'


class SessionJobs:
    """The jobs of one session; is its `core.jobs.JobDesk`. Used on one event loop."""

    def __init__(
        self,
        ledger: Ledger,
        ground: JobGround,
        *,
        spawn: Callable[[str, Coroutine[object, object, None]], None],
        changed: Callable[[], None],
        is_stored: bool,
    ) -> None:
        """`spawn` runs a named coroutine in a task whose owner outlives the session; `changed` is called when a job has begun or ended.

        `is_stored`: the session is there when all clients have left, so that a job can go on.
        """
        self.movable: dict[str, MovableCommand] = {}
        """See `JobDesk`."""
        self.running: dict[str, JobRun] = {}
        """Those whose processes live, by id."""
        self._ledger = ledger
        self._ground = ground
        self._spawn = spawn
        self._changed = changed
        self._is_stored = is_stored
        self._starting: set[str] = set()
        """On their way to the disk, before they start."""
        self._ended: dict[str, JobInfo] = {}
        """Those whose end is not on disk yet."""
        self._outputs: dict[str, JobOutput] = {}
        self._ports: JobPorts | None = None
        """Made with the first job."""
        self._woken: set[str] = set()
        """Those about whose end a run was begun, or is not to be."""
        self._read: dict[str, int] = {}
        """How much of its output the model has read, by job."""

    @property
    def infos(self) -> list[JobInfo]:
        """All that can be asked about, oldest first, as they are now."""
        running = self.running
        return [running[job.id].info if job.id in running else job for job in self._ledger.row.jobs]

    @property
    def has_lost(self) -> bool:
        """Whether a command counts as running that a daemon before this one has started."""
        return any(self._is_lost(job) and not job.session for job in self._ledger.row.jobs)

    def wakes(self) -> bool:
        """Return whether a run is to begin because of a job that has ended; once for each."""
        if not self._ground.config.value.jobs.wake:
            return False
        news = {one.job.id for one in self._ledger.transcript.job_news}
        is_new = not news <= self._woken
        self._woken |= news
        return is_new

    # --- the model, as a `JobDesk` ----------------------------------------------------------------------------------

    async def begin(self, order: JobOrder) -> str:
        """See `JobDesk`."""
        limits, reaper = self._admitted()
        if order.keep:
            kept = [run.info.id for run in self.running.values() if run.info.kept]
            self._ground.admit_kept(kept, is_stored=self._is_stored)
        info = replace(self._new(order.call, order.command, order.out_dir), kept=order.keep)
        await self._begin(info, order.command, partial(self._start, info, order, reaper, limits.output_mb))
        return BEGUN.format(title=title_of(info), end=STAYS if order.keep else WITH_SESSION)

    async def output(self, job: str) -> str:
        """See `JobDesk`."""
        return await self._told(self.find(job))

    async def wait(self, job: str, pattern: str, at_most_s: float) -> str:
        """See `JobDesk`. It waits no longer than `jobs.wait_s`."""
        info = self.find(job)
        run = self.running.get(info.id)
        at_most_s = min(at_most_s, self._ground.config.value.jobs.wait_s)
        try:
            finder = LineFinder(pattern) if pattern else None
        except PatternError as error:
            raise JobError(str(error)) from error
        if run is None:
            return await self._told(info)
        line = await run.wait(finder, self._read.get(info.id, 0), at_most_s)
        if line is not None:
            return await self._told(info, f"[this line fits: {line[:200]}]\n")
        nothing = f"[no line fits yet, after {at_most_s:g} s]\n" if finder is not None and not run.over.is_set() else ""
        return await self._told(self.find(job), nothing)

    # --- people -----------------------------------------------------------------------------------------------------

    async def move(self, call: str) -> JobInfo:
        """Have a command that `bash` runs go on as a job, and end its call; `call`: its id, or empty for the only one.

        Raises JobError if there is none, or it ends just now.
        """
        limits, _ = self._admitted()
        found = [key for key in self.movable if key == call or not call]
        if len(found) != 1:
            raise JobError(NO_COMMAND if not found else WHICH.format(calls=", ".join(found)))
        command = self.movable[found[0]]
        info = self._new(found[0], command.command, command.out_dir)
        await self._begin(info, command.command, partial(self._take_over, info, command, limits.output_mb))
        return info

    # --- subagents --------------------------------------------------------------------------------------------------

    async def begin_task(self, call: str, title: str, *, child: str, out_dir: str, work: "TaskWork") -> str:
        """Have the subagent of the session `child` work as a job; returns what the model is told. Raises JobError, StorageError.

        `call` began it, and `title` says what it does.
        """
        limits, _ = self._admitted()
        info = replace(self._new(call, f"task: {title}", out_dir), session=child)
        await self._begin(info, info.command, partial(self._follow_task, info, work, limits.output_mb))
        return BEGUN_TASK.format(title=title_of(info))

    def resume_tasks(self, work_of: "Callable[[JobInfo], TaskWork]") -> None:
        """Follow the subagents again that an earlier daemon has begun, and that nothing here follows."""
        for job in self._ledger.row.jobs:
            if job.session and self._is_lost(job):
                self._follow_task(job, work_of(job), self._ground.config.value.jobs.output_mb)

    # --- others -----------------------------------------------------------------------------------------------------

    def find(self, job: str) -> JobInfo:
        """Return the job as it is now; raises JobError if there is none."""
        found = next((one for one in self.infos if one.id == job.strip()), None)
        if found is None:
            names = ", ".join(f"{one.id} ({one.state})" for one in self.infos)
            raise JobError(UNKNOWN.format(job=job, there=f"there are {names}" if names else "no job was begun"))
        return found

    async def end(self, job: str, reason: str) -> None:
        """See `JobDesk`. It waits at most `END_S`; `reason` completes "it was"."""
        run = self.running.get(job)
        if run is None:
            return
        run.reason = run.reason or reason
        with suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await run.command.stop()
                await run.over.wait()
                await self._ledger.settled.wait()

    async def look(self) -> list[JobInfo]:
        """Return `infos` with the ports as they are now."""
        if self._ports is not None:
            await self._ports.look()
        return self.infos

    async def end_all(self, reason: str, *, tasks: bool = True, kept: bool = False) -> None:
        """End all jobs, as `end` does; `tasks`: subagents, too; `kept`: also those that are to go on. Takes at most `END_S`."""
        async with asyncio.TaskGroup() as group:
            for job, run in self.running.items():
                info = run.info
                if (tasks or not info.session) and (kept or not info.kept):
                    group.create_task(self.end(job, reason), name=f"end of {job}")

    async def repair(self) -> None:
        """Record what became of commands that a daemon before this one has started; the transcript is loaded.

        Raises StorageError.
        """
        for job in self._ledger.row.jobs:
            if self._is_lost(job) and job.kept:
                await self._adopt(job)
            elif self._is_lost(job) and not job.session:  # a subagent goes on, see `resume_tasks`
                self._woken.add(job.id)  # after a restart, nothing begins by itself
                known = self._ended.pop(job.id, None)
                ended = known or replace(job, state=INTERRUPTED)
                await self._write(records.JobEnded(time=rfc3339(), job=ended, note=end_note(ended)), ended)

    # --- inside -----------------------------------------------------------------------------------------------------

    def _is_lost(self, job: JobInfo) -> bool:
        return job.state == RUNNING and job.id not in self.running and job.id not in self._starting

    def _admitted(self) -> tuple[JobsSection, OrphanReaper]:
        return self._ground.admitted([*self._starting, *self.running])

    def _new(self, call: str, command: str, out_dir: str) -> JobInfo:
        jobs = self._ledger.row.jobs
        name = f"j{1 + int(jobs[-1].id[1:]) if jobs else 1}"
        return JobInfo(
            id=name,
            command=command[:COMMAND_CHARS],
            call=call,
            state=RUNNING,
            started=rfc3339(),
            output=os.fspath(Path(out_dir, f"{name}.txt")),
        )

    async def _begin(self, info: JobInfo, command: str, start: Callable[[], None]) -> None:
        """Record a job, and then start it: after a crash it is known that there may have been a process."""
        self._starting.add(info.id)
        try:
            await self._write(records.JobStarted(time=info.started, job=info, command=command), info)
            start()
        except BaseException as error:
            failed = replace(info, state=ENDED, exit=NOT_STARTED, reason=str(error) or "the request was cut off")
            self._write(records.JobEnded(time=rfc3339(), job=failed), failed).add_done_callback(_seen)
            raise
        finally:
            self._starting.discard(info.id)
        self._changed()

    def _follow_task(self, info: JobInfo, work: "TaskWork", output_mb: int) -> None:
        from zotd.sessions.job_run import follow_task  # noqa: PLC0415  (see `TYPE_CHECKING`)

        self._begun(info.id, follow_task(info, work, output_mb=output_mb, printed=_not_heard))

    async def _adopt(self, info: JobInfo) -> None:
        """Follow a job again that goes on without a daemon, or has ended since; both as if it had been followed all the time."""
        from zotd.sessions.kept_job import adopt_job  # noqa: PLC0415  (see `TYPE_CHECKING`)

        reaper = self._ground.reaper
        run = None if reaper is None else await adopt_job(info, reaper, session=self._ledger.row.id)
        if run is None:
            return
        if run.has_ended:
            self._woken.add(info.id)  # after a restart, nothing begins by itself
        self._watched_ports()
        self._begun(info.id, run)

    def _start(self, info: JobInfo, order: JobOrder, reaper: OrphanReaper, output_mb: int) -> None:
        from zotd.sessions.job_run import start_job  # noqa: PLC0415  (see `TYPE_CHECKING`)
        from zotd.sessions.kept_job import start_kept_job  # noqa: PLC0415

        if order.keep:
            self._watched_ports()
            run = start_kept_job(info, order, reaper, session=self._ledger.row.id, output_mb=output_mb)
            self._begun(info.id, run)
            return
        session, printed = self._ledger.row.id, self._watched_ports().printed
        self._begun(info.id, start_job(info, order, reaper, session=session, output_mb=output_mb, printed=printed))

    def _take_over(self, info: JobInfo, command: MovableCommand, output_mb: int) -> None:
        from zotd.sessions.job_run import move_job  # noqa: PLC0415  (see `TYPE_CHECKING`)
        from zotd.tools.shared import RunningCommand  # noqa: PLC0415

        assert isinstance(command, RunningCommand)
        if command.has_ended:
            raise JobError(TOO_LATE)
        run = move_job(info, command, output_mb=output_mb, printed=self._watched_ports().printed)
        self._read[info.id] = run.output.total  # what the result of the call has
        self._begun(info.id, run)

    def _begun(self, job: str, run: "JobRun") -> None:
        self.running[job] = run
        self._outputs[job] = run.output
        self._spawn(f"job {job} of {self._ledger.row.id}", self._follow(job, run))

    def _watched_ports(self) -> "JobPorts":
        from zotd.sessions.job_ports import JobPorts  # noqa: PLC0415  (see `TYPE_CHECKING`)

        self._ports = self._ports or JobPorts(self.running, self._spawn, self._listens)
        return self._ports

    async def _follow(self, job: str, run: "JobRun") -> None:
        """Watch it to its end, and record that."""
        addition = ""
        try:
            await run.command.follow()
            addition = await run.addition()
        finally:
            if not run.outlasts:
                ended = self._ended[job] = run.ended()
                # The model knows of what it has stopped itself.
                note = "" if run.reason == BY_MODEL else end_note(ended, addition)
                written = self._write(records.JobEnded(time=rfc3339(), job=ended, note=note), ended)
                written.add_done_callback(lambda done: self._recorded(job, done))
            del self.running[job]
            run.end()
            self._changed()

    def _listens(self, job: str, ports: list[int]) -> None:
        self._ledger.live([events.JobPortsChanged(job, ports, session=self._ledger.label)])

    def _recorded(self, job: str, written: asyncio.Future[None]) -> None:
        if _seen(written):
            self._ended.pop(job, None)

    def _write(self, record: records.JobStarted | records.JobEnded, info: JobInfo) -> asyncio.Future[None]:
        """Record it; the row has the job as it is from now on."""
        jobs = [job for job in self._ledger.row.jobs if job.id != info.id]
        jobs = sorted([*jobs, info], key=lambda job: int(job.id[1:]))
        over = [job.id for job in jobs if job.state != RUNNING]
        dropped = set(over[: max(0, len(over) - KEPT)]) - {
            jobs[-1].id
        }  # the last one keeps its number from being used again
        for job in dropped:
            self._outputs.pop(job, None)
            self._read.pop(job, None)
        kept = tuple(job for job in jobs if job.id not in dropped)
        return self._ledger.write([Shown(record, [events.JobChanged(info)])], durable=True, jobs=kept)

    async def _told(self, info: JobInfo, first: str = "") -> str:
        """Return what has come since the model last read, and the state of the job."""
        from zotd.process.bounded_output import BoundedOutput  # noqa: PLC0415  (see `TYPE_CHECKING`)
        from zotd.sessions.job_run import unread  # noqa: PLC0415
        from zotd.tools.shared import in_thread  # noqa: PLC0415

        output = self._outputs.get(info.id)
        if output is None:
            output = await in_thread(lambda _: BoundedOutput.at_rest(Path(info.output), info.output_bytes))
            self._outputs[info.id] = output
        await output.written()
        await self.look()
        start, end = self._read.get(info.id, 0), output.total
        text = await in_thread(lambda _: unread(output, start))
        self._read[info.id] = end
        return f"{first}{text or NOTHING_NEW}[{title_of(info)} {state_of(self.find(info.id))}]"


def _seen(written: asyncio.Future[None]) -> bool:
    """Return whether it was written, and mark the exception as retrieved: the session is blocked then, which others tell."""
    return not written.cancelled() and written.exception() is None


def _not_heard() -> None:
    """A subagent listens on no port, so nothing looks for any when it prints."""
