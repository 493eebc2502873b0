"""Runs what waits in a session's queue, one job after the other; holds the rest when one of them fails.

    wake ──> (job ──> plan ──> run ──> ended)*  ──> nothing waits any more
                                         └────────> failed, or aborted while inputs wait: they are held

It does not depend on clients: only an abort or the end of the process interrupts it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from enum import Enum, auto
from functools import partial
from typing import Literal

from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.closings import closings
from zotd.core.ports import StorageError
from zotd.ledger.ledger import Ledger, Shown
from zotd.runs import recovery
from zotd.runs.compaction import CompactionRun
from zotd.runs.context import RunContext, RunStart
from zotd.runs.early_summary import EarlyRequest
from zotd.runs.queue import Job, Queue
from zotd.runs.runner import Runner
from zotd.runs.shell import ShellCommand
from zotd.runs.tool_calls import cut_results
from zotd.wire import events
from zotd.wire.api import RunInfo, Started, Waiting
from zotd.wire.errors import Code, CommandError

log = logging.getLogger(__name__)

STOPPING = "zot is stopping; send it again after the restart"

BEING_MOVED = "the session is being moved to another daemon; send it again in a moment"

BROKEN = "the run failed inside zot; see the daemon's log"


class Activity(Enum):
    """What a worker does now."""

    IDLE = auto()
    PREPARING = auto()  # a job was taken, or is about to be; there is no run yet that could be aborted
    RUNNING = auto()
    ENDING = auto()  # clients have got the run's `done`; what it has started may still be on its way out
    HOLDING = auto()  # a run has failed, and the inputs behind it are being recorded as held


class Intake(Enum):
    """Whether a worker starts jobs."""

    OPEN = auto()
    CLOSED = auto()  # the process ends
    DRAINING = auto()  # the process ends soon; the run in progress stops where the next process can resume it
    MOVING = auto()  # another daemon gets the session; the run in progress stops where that one can resume it

    def refusal(self) -> CommandError:
        """Return why a job is refused, unless it is open."""
        return CommandError(Code.SHUTTING_DOWN, BEING_MOVED if self is Intake.MOVING else STOPPING)


class PendingAbort(Enum):
    """An abort that arrived before the run that it is meant for."""

    NONE = auto()
    CURRENT = auto()  # for the run that is being prepared
    NEXT = auto()  # for the prompt behind a run whose `done` has been shown, but that has not ended yet


class Worker:
    """Takes the jobs of one session and runs them."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        plan: Callable[[records.Input | None], Awaitable[RunContext]],
        spawn: Callable[[str, Coroutine[object, object, None]], None],
        changed: Callable[[], None],
        closing: Callable[[], None],
        hurry: Callable[[], None],
    ) -> None:
        """`plan` prepares a run for its input, None for a compaction or a run that goes on.

        `spawn` runs a named coroutine in a task whose owner outlives the session. `changed` is told that work has
        begun or ended, `closing` that calls which a crash has left open are given up, `hurry` that the run which is
        being prepared is to end at once.
        """
        self.queue = Queue()
        """What waits; change it through the session."""
        self.early = EarlyRequest(ledger, spawn=spawn, ended=changed)
        """The summary that is made before it is needed; it may still be under way when nothing else is."""
        self._ledger = ledger
        self._plan = plan
        self._spawn = spawn
        self._changed = changed
        self._closing = closing
        self._hurry = hurry
        self._current: Runner | CompactionRun | ShellCommand | None = None
        self.began = 0.0
        """When the last job began, by the clock of the event loop."""
        self.activity = Activity.IDLE
        self.intake = Intake.OPEN
        self._abort = PendingAbort.NONE
        self._continues = False  # an input came after the last abort, so the queue is not held
        self._stopped = asyncio.Event()
        self._stopped.set()

    @property
    def is_active(self) -> bool:
        """A job runs, or is about to."""
        return self.activity is not Activity.IDLE

    @property
    def is_aborting(self) -> bool:
        """The run that is being prepared is to end at once."""
        return self._abort is PendingAbort.CURRENT

    def run_info(self) -> RunInfo | None:
        """The run in progress, unless its `done` has been shown."""
        return self._current.info() if self._current and self.activity is not Activity.ENDING else None

    @property
    def written(self) -> int:
        """Characters of the reply that a model is writing; 0: none is."""
        return self._current.written if isinstance(self._current, Runner) else 0

    @property
    def waiting(self) -> Waiting | None:
        """The run waits for its model, which has failed."""
        return self._current.pause.info() if isinstance(self._current, Runner) else None

    def retry(self) -> bool:
        """Ask a model that has failed again now; False when no run waits for one."""
        return isinstance(self._current, Runner) and self._current.pause.end()

    def is_parked(self, questions: int) -> bool:
        """Return True if it does nothing but wait for people, who have that many questions to answer."""
        return isinstance(self._current, Runner) and self._current.is_parked(questions)

    def wake(self) -> None:
        """There is something in the queue."""
        if self.activity is Activity.IDLE:
            self.activity = Activity.PREPARING
            self._stopped.clear()
            self._changed()
            self._spawn(f"session {self._ledger.row.id}", self._work())

    async def enter(self, job: Job, *, first: bool = False) -> None:
        """Take a job whose sender is answered when it starts; `first`: before everything that waits."""
        answered = job.expect_answer()
        if first:
            self.queue.put_first(job)
        else:
            self.queue.add(job)
        self.wake()
        await answered

    def continue_after_abort(self) -> None:
        """Go on with the queue although the last run was aborted: an input or a person asks for it."""
        self._continues = True

    def refuse_jobs(self) -> None:
        """Start no more jobs, because the process ends."""
        if self.intake is Intake.OPEN:
            self.intake = Intake.CLOSED

    def abort(self, *, for_good: bool) -> None:
        """Cancel what runs now; `for_good`: and start nothing more.

        An early summary goes on: it covers messages that an abort does not change, and its input is paid for.
        """
        if for_good:
            self.refuse_jobs()
            self.early.cancel()
        self._continues = False
        if isinstance(self._current, Runner) and self.activity is Activity.ENDING:
            # A client that sends a prompt and an abort directly behind a `done` means the prompt.
            self._abort = PendingAbort.NEXT if len(self.queue) else PendingAbort.NONE
        elif self._current is not None:
            self._current.abort()
        elif self.is_active and not (self.activity is Activity.HOLDING and self._ledger.transcript.held):
            self._abort = PendingAbort.CURRENT
            self._hurry()

    def drain(self, intake: Literal[Intake.DRAINING, Intake.MOVING]) -> None:
        """Start nothing more for this reason; a run stops where another process can go on with it."""
        self.intake = intake
        self.early.refuse()
        if isinstance(self._current, Runner):
            self._current.drain()

    async def stopped(self) -> None:
        """Wait until nothing runs."""
        await self._stopped.wait()

    async def _work(self) -> None:
        """Run what waits until nothing does."""
        try:
            while (
                self.intake is Intake.OPEN and (job := self.queue.take(held=self._ledger.transcript.held)) is not None
            ):
                stop = await self._run(job)
                goes_on = stop == "end_turn" or (stop == "aborted" and self._continues)
                if not goes_on and self.queue.items():
                    await self._hold()
        except* StorageError as group:
            error = self._ledger.failure or group
            while (left := self.queue.take(held=False)) is not None:  # what was accepted is in the journal
                left.fail(error)
            text = f"the journal cannot be written: {error}; the session continues when it can"
            self._ledger.live([events.Notice("error", text, session=self._ledger.label)])
        finally:
            self.activity, self._abort = Activity.IDLE, PendingAbort.NONE
            self._stopped.set()
            self._changed()

    async def _hold(self) -> None:
        self.activity = Activity.HOLDING
        try:
            await self._ledger.write([self.queue.record(held=True)], durable=True, state="held")
        finally:
            self.activity = Activity.PREPARING

    async def _run(self, job: Job) -> str:
        self.began = asyncio.get_running_loop().time()
        try:
            if job.shell is not None:
                return await self._run_shell(job, job.shell)
            if job.errand is not None:
                return await self._run_errand(job, job.errand)
            plan = await self._plan(job.input)
            if not job.resumes:
                await self._close_open_calls()
            if job.input is None and not job.resumes:
                return await self._run_compaction(job, plan)
            return await self._run_turns(job, plan)
        except Exception as error:
            told = job.told
            job.fail(self._ledger.failure or error)
            if self._ledger.failure is not None:
                raise
            if told:
                if not isinstance(error, CommandError):  # else it is refused, and clients are told why
                    log.exception("run %s of session %s failed", job.run, self._ledger.row.id)
                await self._end_broken(job, error.sentence if isinstance(error, CommandError) else BROKEN)
            return "error"
        except BaseException as error:
            job.fail(error)
            raise
        finally:
            self._current, self.activity = None, Activity.PREPARING
            self._abort = PendingAbort.CURRENT if self._abort is PendingAbort.NEXT else PendingAbort.NONE

    async def _close_open_calls(self) -> None:
        """Record results for calls that a crash left open, because the next job does not resume their run."""
        if self._ledger.transcript.has_open_calls:
            self._closing()
            await self._ledger.write(cut_results(closings(self._ledger.transcript, rfc3339())), durable=False)

    async def _end_broken(self, job: Job, text: str) -> None:
        """End a run that failed inside zot, so that clients get `done` and the history stays valid."""
        transcript, run = self._ledger.transcript, job.run
        if job.input is not None and job.input.id in transcript.waiting:
            self.queue.put_back(job)
        now = rfc3339()
        note = records.Note(time=now, level="error", text=text)
        items: list[Shown] = []
        if transcript.run_open:  # else it had not begun: a run that a crash has cut before it can still be resumed
            items += [*cut_results(closings(transcript, now)), *recovery.unbilled(transcript, now)]
        items.append(Shown(note, [events.Error(text), events.Done(run=run)]))
        state = "held" if transcript.interrupted else self._ledger.transcript.rest
        await self._ledger.write(items, durable=False, state=state, accepted=self._done_shown)

    def _done_shown(self) -> None:
        """Called just before the `done` of a run is shown."""
        self.activity = Activity.ENDING

    async def _run_turns(self, job: Job, plan: RunContext) -> str:
        accepted = None
        if not job.stored:
            answer = Started(started=True, input=job.input.id if job.input else None, run=job.run)
            accepted = partial(job.answer, answer)
        start = RunStart(job.input, new=not job.stored, accepted=accepted, done_shown=self._done_shown)
        runner = Runner(
            job.run, self._ledger, plan, queue=self.queue, start=start, early=self.early, rested=self._changed
        )
        self._take(runner)
        try:
            stop = await runner.run()
        finally:
            if plan.ended is not None:
                plan.ended()
        if plan.checkpoints is not None:
            self._spawn(f"packing of the checkpoints of {self._ledger.row.id}", plan.checkpoints.tidy())
        if stop == "cut":  # now and not at the next start, so that followers learn what became of it
            cut = recovery.repairs(self._ledger.transcript, "")
            await self._ledger.write(cut, durable=True, state="held")
        return stop

    async def _run_compaction(self, job: Job, plan: RunContext) -> str:
        compaction_run = CompactionRun(
            job.run, self._ledger, plan, instructions=job.instructions, done_shown=self._done_shown
        )
        self._take(compaction_run)
        job.answer(Started(started=True, run=job.run))
        return await compaction_run.run()

    async def _run_shell(self, job: Job, shell: ShellCommand) -> str:
        self._take(shell)
        accepted = partial(job.answer, Started(started=True, run=job.run))
        return await shell.run(accepted=accepted, done_shown=self._done_shown)

    async def _run_errand(self, job: Job, errand: Callable[[], Awaitable[None]]) -> str:
        try:
            await errand()
        except CommandError as error:  # its sender is told, and what waits goes on
            job.fail(error)
        else:
            job.answer(Started(started=True))
        return "end_turn"

    def _take(self, current: Runner | CompactionRun | ShellCommand) -> None:
        self._current, self.activity = current, Activity.RUNNING
        if self._abort is PendingAbort.CURRENT:
            current.abort()
        elif self.intake in {Intake.DRAINING, Intake.MOVING} and isinstance(current, Runner):
            current.drain()
