"""Runs what waits in a session's queue, one job after the other; holds the rest when one of them fails.

    wake ──> (job ──> plan ──> run ──> ended)*  ──> nothing waits any more
                                         └────────> failed, or aborted while inputs wait: they are held

It goes on whoever comes and leaves; only an abort, or the end of the process, cuts it short.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine

from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.ports import StorageError
from zotd.ledger.ledger import Ledger, Shown
from zotd.runs import recovery
from zotd.runs.compaction import CompactionRun
from zotd.runs.context import RunContext
from zotd.runs.queue import Job, Queue
from zotd.runs.runner import Runner, RunStart
from zotd.runs.shell import ShellCommand
from zotd.runs.tool_calls import cut_results
from zotd.wire import events
from zotd.wire.api import RunInfo, Started, Waiting
from zotd.wire.errors import CommandError

log = logging.getLogger(__name__)

BROKEN = "the run failed inside zot; the log says more"


class Worker:
    """What one session does."""

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
        self._ledger = ledger
        self._plan = plan
        self._spawn = spawn
        self._changed = changed
        self._closing = closing
        self._hurry = hurry
        self._current: Runner | CompactionRun | ShellCommand | None = None
        self.is_active = False
        """A job runs, or is about to."""
        self.began = 0.0
        """When the last job began, by the clock of the event loop."""
        self.is_aborting = False
        """The run that is being prepared is to end at once."""
        self._aborts_next = False
        """An abort came behind a prompt that waits only for the end of a run whose `done` has been shown."""
        self.asked_on = False
        """An input came after the last abort: what waits goes on with it."""
        self.is_holding = False
        """A run has failed, and what waits is being held: there is nothing to abort."""
        self.is_stopping = False
        """Nothing more is started, because the process ends."""
        self._is_draining = False
        self._stopped = asyncio.Event()
        self._stopped.set()

    def run_info(self) -> RunInfo | None:
        """The run in progress."""
        return self._current.info() if self._current else None

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
        """Whether all that it does is wait for people, who are asked so many questions."""
        return isinstance(self._current, Runner) and self._current.is_parked(questions)

    def wake(self) -> None:
        """There is something in the queue."""
        if not self.is_active:
            self.is_active = True
            self._stopped.clear()
            self._changed()
            self._spawn(f"session {self._ledger.row.id}", self._work())

    async def enter(self, job: Job, *, first: bool = False) -> None:
        """Take a job whose sender is answered when it starts; `first`: before everything that waits."""
        job.answered = asyncio.get_running_loop().create_future()
        if first:
            self.queue.put_first(job)
        else:
            self.queue.add(job)
        self.wake()
        await job.answered

    def abort(self, *, for_good: bool) -> None:
        """Cancel what runs now; `for_good`: and start nothing more."""
        self.is_stopping |= for_good
        self.asked_on = False
        if isinstance(self._current, Runner) and self._current.has_ended:
            # A client that sends a prompt and an abort directly behind a `done` means the prompt.
            self._aborts_next = len(self.queue) > 0
        elif self._current is not None:
            self._current.abort()
        elif self.is_active and not (self.is_holding and self._ledger.transcript.held):
            self.is_aborting = True
            self._hurry()

    def drain(self) -> None:
        """Start nothing more, because the process ends soon; a run stops where another one can go on with it."""
        self.is_stopping = self._is_draining = True
        if isinstance(self._current, Runner):
            self._current.drain()

    async def stopped(self) -> None:
        """Wait until nothing runs."""
        await self._stopped.wait()

    async def _work(self) -> None:
        """Run what waits until nothing does."""
        try:
            while not self.is_stopping and (job := self.queue.take(held=self._ledger.transcript.held)) is not None:
                stop = await self._run(job)
                goes_on = stop == "end_turn" or (stop == "aborted" and self.asked_on)
                if not goes_on and self.queue.items():
                    await self._hold()
        except* StorageError as group:
            error = self._ledger.failure or group
            while (left := self.queue.take(held=False)) is not None:  # what was accepted is in the journal
                left.fail(error)
            text = f"nothing can be stored: {error}; the session waits until that is mended"
            self._ledger.live([events.Notice("error", text, session=self._ledger.label)])
        finally:
            self.is_active = self.is_aborting = False
            self._stopped.set()
            self._changed()

    async def _hold(self) -> None:
        self.is_holding = True
        try:
            await self._ledger.write([self.queue.record(held=True)], durable=True, state="held")
        finally:
            self.is_holding = False

    async def _run(self, job: Job) -> str:
        self.began = asyncio.get_running_loop().time()
        try:
            if job.shell is not None:
                return await self._run_shell(job, job.shell)
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
                log.exception("run %s of session %s failed", job.run, self._ledger.row.id)
                await self._end_broken(job, error.sentence if isinstance(error, CommandError) else BROKEN)
            return "error"
        except BaseException as error:
            job.fail(error)
            raise
        finally:
            self._current = None
            self.is_aborting, self._aborts_next = self._aborts_next, False

    async def _close_open_calls(self) -> None:
        """Give calls that a crash has left open their results: somebody asks for something else than going on."""
        closings = self._ledger.transcript.closings(rfc3339())
        if closings:
            self._closing()
            await self._ledger.write(cut_results(closings), durable=False)

    async def _end_broken(self, job: Job, text: str) -> None:
        """End a run that a fault of ours has cut, so that nobody waits for `done` and the history stays legal."""
        transcript, run = self._ledger.transcript, job.run
        if job.input is not None and job.input.id in transcript.waiting:
            self.queue.put_back(job)
        now = rfc3339()
        note = records.Note(time=now, level="error", text=text)
        items: list[Shown] = []
        if transcript.run_open:  # else it had not begun: what a crash has cut before it can still be gone on with
            items += [*cut_results(transcript.closings(now)), *recovery.unbilled(transcript, now)]
        items.append(Shown(note, [events.Error(text), events.Done(run=run)]))
        state = "held" if transcript.interrupted else self._ledger.rest
        await self._ledger.write(items, durable=False, state=state)

    async def _run_turns(self, job: Job, plan: RunContext) -> str:
        accepted = None
        if not job.stored:
            answer = Started(started=True, input=job.input.id if job.input else None, run=job.run)
            accepted = lambda: job.answer(answer)  # noqa: E731  (a name for it would say nothing more)
        start = RunStart(job.input, new=not job.stored, accepted=accepted)
        runner = Runner(job.run, self._ledger, plan, queue=self.queue, start=start, rested=self._rested)
        self._take(runner)
        stop = await runner.run()
        if stop == "cut":  # now, and not at the next start: whoever follows is told what became of it
            cut = recovery.repairs(self._ledger.transcript, "")
            await self._ledger.write(cut, durable=True, state="held")
        return stop

    async def _run_compaction(self, job: Job, plan: RunContext) -> str:
        compaction_run = CompactionRun(job.run, self._ledger, plan, instructions=job.instructions)
        self._take(compaction_run)
        job.answer(Started(started=True, run=job.run))
        return await compaction_run.run()

    async def _run_shell(self, job: Job, shell: ShellCommand) -> str:
        self._take(shell)
        return await shell.run(accepted=lambda: job.answer(Started(started=True, run=job.run)))

    def _rested(self) -> None:
        if self._is_draining:  # else nobody waits for that
            self._changed()

    def _take(self, current: Runner | CompactionRun | ShellCommand) -> None:
        self._current = current
        if self.is_aborting:
            current.abort()
        elif self._is_draining and isinstance(current, Runner):
            current.drain()
