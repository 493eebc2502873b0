"""One conversation: takes inputs one after the other, runs them, and tells everybody who follows.

    idle -> running -> idle            a run or a compaction, and the next one that waits
    running -> held                    a run failed or was aborted while inputs waited: they wait for a person
    held -> running                    the next prompt

Whatever changes the session is decided in one synchronous step and awaited afterwards, so commands that arrive in
an order take effect in it.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Protocol

from zotd import ids
from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.ports import Row, StorageError
from zotd.sessions import inputs
from zotd.sessions.calls import cut_results
from zotd.sessions.compacting import Compacting
from zotd.sessions.driver import Driver, Start
from zotd.sessions.environment import Environment
from zotd.sessions.extensions import Extensions
from zotd.sessions.info import describe
from zotd.sessions.ledger import Ledger, Shown
from zotd.sessions.plan import Plan
from zotd.sessions.queue import Job, Queue, Request
from zotd.wire import events
from zotd.wire.api import PromptImage, RunInfo, SessionInfo, Started
from zotd.wire.content import Message, Tokens, visible
from zotd.wire.errors import Code, CommandError

log = logging.getLogger(__name__)

BROKEN = "the run failed inside zot; the log says more"

INTERRUPTED = "the daemon stopped in the middle of this run; what was under way may or may not have happened"


class Planner(Protocol):
    """Prepares runs."""

    def check(self, settings: records.Settings, environment: Environment) -> None:
        """Raise CommandError when no run could start, such as for want of a key. Quick."""
        ...

    async def plan(self, session: "Session", first: records.Input | None) -> Plan:
        """What the next run works with; `first` is its input, None for a compaction."""
        ...


class Session:
    """A conversation. Methods that change it raise CommandError for the sender, StorageError from the journal."""

    def __init__(
        self,
        ledger: Ledger,
        environment: Environment,
        planner: Planner,
        *,
        spawn: Callable[[str, Coroutine[object, object, None]], None],
        changed: Callable[["Session"], None],
        stored_queue: bool,
        ephemeral: bool = False,
    ) -> None:
        """`spawn` runs a named coroutine in a task whose owner outlives the session; `changed` is told of a new state.

        `stored_queue`: a waiting input is recorded and answered at once, and held after a failed run; on stdio it is
        neither, its answer comes when it starts.
        """
        self.ledger = ledger
        self.ephemeral = ephemeral
        """It has no journal on disk and ends with its last client."""
        self.holders = 0
        """Connections that keep an ephemeral session although they do not follow it: those that created it."""
        self.environment = environment
        self._planner = planner
        self._spawn = spawn
        self._changed = changed
        self._stored_queue = stored_queue
        self.queue = Queue()
        """What waits; change it through the session."""
        self.extensions: Extensions | None = None
        """What it has of extensions, while somebody needs the session; see `sessions.hosting`."""
        self._current: Driver | Compacting | None = None
        self._working = False
        self.is_aborting = False
        """The run that is being prepared is to end at once."""
        self.is_quieted = False
        """Somebody has aborted and asked for nothing since: extensions may not submit anything."""
        self._asked_on = False
        """An input came after the last abort: what waits goes on with it."""
        self._ending = False
        """A run has failed, and what waits is being held: there is nothing to abort."""
        self._stopping = False
        self._stopped = asyncio.Event()
        self._stopped.set()
        self._loading = asyncio.Lock()

    # --- what it is -------------------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """The session's id."""
        return self.ledger.row.id

    @property
    def state(self) -> str:
        """`running`, `held`, `blocked` or `idle`."""
        if self.ledger.failure is not None or (self.ledger.damage is not None and not self._working):
            return "blocked"
        if self._working:
            return "running"
        return "held" if self.ledger.transcript.held or self.ledger.row.state == "held" else "idle"

    def info(self, clients: int = 0) -> SessionInfo:
        """As lists and snapshots show it."""
        return describe(self.ledger.row, self.state, clients, ephemeral=self.ephemeral)

    def run_info(self) -> RunInfo | None:
        """The run in progress."""
        return self._current.info() if self._current else None

    def messages(self, *, full: bool) -> list[Message]:
        """The transcript as the model sees it; `full` with image data."""
        found = self.ledger.transcript.messages
        if full:
            return list(found)
        return [Message(message.role, visible(message.content), message.time) for message in found]

    # --- loading ----------------------------------------------------------------------------------------------

    async def load(self) -> None:
        """Have the transcript in memory; after a crash, give every cut call its result and say what was cut."""
        if self.ledger.loaded and not self._loading.locked():
            return  # at once, so that commands stay in their order: a lock would let those that wait for it go first
        async with self._loading:
            if not self.ledger.loaded:
                row = self.ledger.row
                self.ledger.load(await self.ledger.journal.records(row.id, row.base))
                await self._repair()

    async def reload(self, row: Row) -> None:
        """Begin anew from what the journal holds, when it could not write; followers, environment and keys stay."""
        if self.ledger.failure is not None:
            self.ledger.reset(row)
            self.queue = Queue()  # what waits is in the journal; it was put here before, when loading failed again
            if row.state != "idle":
                await self.load()

    async def _repair(self) -> None:
        transcript = self.ledger.transcript
        now = rfc3339()
        items = cut_results(transcript.repairs(now))
        if transcript.run_open:
            record = records.Interrupted(time=now, what="run", text=INTERRUPTED)
            shown = [events.Interrupted("run", INTERRUPTED), events.Done(run=transcript.run)]
            items.append(Shown(record, shown))
        for item in transcript.waiting.values():
            self.queue.restore(Job(_told_before, item, stored=True))
        held = len(self.queue) > 0
        if held and not transcript.held:
            items.append(self.queue.record(held=True))
        if items or self.ledger.row.state == "running":
            await self.ledger.write(items, durable=False, state="held" if held else "idle")

    # --- inputs -----------------------------------------------------------------------------------------------

    async def prompt(
        self,
        message: str,
        images: Sequence[PromptImage],
        *,
        sender: str,
        when_busy: str,
        accepted: Callable[[Started], None],
        request: Request | None = None,
        opening: records.Opening | None = None,
    ) -> None:
        """Take an input; `accepted` is called when it is safe on disk, before any event that it causes.

        A `request` that is in the journal already, from before a restart, is only answered.
        """
        self._refuse_when_blocked()
        if request is not None and (first := self.ledger.transcript.requests.get(request.id)) is not None:
            self._answer_again(request, first, accepted)
            return
        self._planner.check(self.ledger.row.settings, self.environment)
        self.is_quieted = False
        content = inputs.content(message, images)
        waits = self._working or len(self.queue) > 0
        if waits and when_busy == "reject":
            raise CommandError(Code.BUSY, "the session is busy; wait, or send the prompt with when_busy=queue")
        self.ledger.title(message)
        record = records.Input(
            time=rfc3339(),
            id=ids.new("i"),
            content=content,
            sender=sender,
            request_id=request.id if request else None,
            digest=request.digest if request else None,
            opening=opening,
        )
        if self.extensions is not None:
            self.extensions.audience.prompted(message, queued=waits, images=len(images))
        job = Job(accepted, record)
        if waits and self._stored_queue:
            await self._enqueue(job, record)
        else:
            await self._enter(job)

    async def compact(self, instructions: str, *, accepted: Callable[[Started], None]) -> None:
        """Summarise the transcript when it is its turn; `accepted` is called when it starts."""
        self._refuse_when_blocked()
        self._planner.check(self.ledger.row.settings, self.environment)
        await self._enter(Job(accepted, instructions=instructions))

    def abort(self, *, for_good: bool = False) -> None:
        """Cancel what runs now; nothing happens when nothing does.

        `for_good`: and start nothing more, because the process ends. What is stored waits for the next one.
        """
        self._stopping |= for_good
        self._asked_on = False
        self.is_quieted = True
        if self._current is not None:
            self._current.abort()
        elif self._working and not (self._ending and self.ledger.transcript.held):
            self.is_aborting = True
            if self.extensions is not None:
                self.extensions.hurry()

    async def change_queue(self, change: Callable[[Queue], None], *, accepted: Callable[[], None]) -> None:
        """Withdraw or move inputs that wait; `change` does it at once."""
        change(self.queue)
        held = self.ledger.transcript.held and bool(self.queue.items())
        state = self.ledger.row.state if held or self._working else "idle"
        await self.ledger.write([self.queue.record(held=held)], durable=True, accepted=accepted, state=state)

    async def stopped(self) -> None:
        """Wait until nothing runs."""
        await self._stopped.wait()

    # --- settings ---------------------------------------------------------------------------------------------

    async def configure(
        self, settings: records.Settings, name: str, *, accepted: Callable[[], None], changes: events.SessionChanged
    ) -> None:
        """Settings and a name from the next run on; `changes` is the event that tells of them."""
        self._refuse_when_blocked()
        old = self.ledger.row.settings
        if self._working and (old.provider, old.model) != (settings.provider, settings.model):
            raise CommandError(Code.BUSY, "the session is busy; switch the model when the run is over, or abort it")
        record = records.Config(time=rfc3339(), settings=settings, name=name)
        future = self.ledger.write(
            [Shown(record, [changes])], durable=True, settings=settings, name=name, accepted=accepted
        )
        self._changed(self)
        await future

    async def clear(self, *, accepted: Callable[[], None]) -> None:
        """Start the transcript anew; people still see the old one."""
        self._refuse_when_blocked()
        if self._working:
            raise CommandError(Code.BUSY, "the session is busy; clear it when the run is over, or abort it")
        await self.ledger.write(
            [Shown(records.Clear(time=rfc3339()))], durable=True, context=0, usage=Tokens(), accepted=accepted
        )
        if self.extensions is not None:
            self.extensions.board.clear_notes()

    # --- working ----------------------------------------------------------------------------------------------

    async def _enqueue(self, job: Job, record: records.Input) -> None:
        """Store an input behind those that wait, and answer its sender."""
        self.queue.add(job, held=self.ledger.transcript.held)
        self._asked_on = True
        job.stored = True
        position = len(self.queue.items())
        order = self.queue.record(held=False)
        future = self.ledger.write(
            [Shown(record), order],
            durable=True,
            accepted=lambda: job.accepted(Started(started=False, input=record.id, position=position)),
            state="running",
        )
        self._wake()
        await future

    async def _enter(self, job: Job) -> None:
        """Take a job whose sender is answered when it starts."""
        job.answered = asyncio.get_running_loop().create_future()
        self.queue.add(job)
        self._wake()
        await job.answered

    def _wake(self) -> None:
        if not self._working:
            self._working = True
            self._stopped.clear()
            self._changed(self)
            self._spawn(f"session {self.id}", self._work())

    async def _work(self) -> None:
        """Run what waits until nothing does."""
        try:
            while not self._stopping and (job := self.queue.take(held=self.ledger.transcript.held)) is not None:
                stop = await self._run(job)
                goes_on = stop == "end_turn" or (stop == "aborted" and self._asked_on)
                if not goes_on and self.queue.items():
                    await self._hold()
        except* StorageError as group:
            error = self.ledger.failure or group
            while (left := self.queue.take(held=False)) is not None:  # what was accepted is in the journal
                left.fail(error)
            text = f"nothing can be stored: {error}; the session waits until that is mended"
            self.ledger.live([events.Notice("error", text, session=self.ledger.label)])
        finally:
            self._working = False
            self._stopped.set()
            self._changed(self)

    async def _hold(self) -> None:
        self._ending = True
        try:
            await self.ledger.write([self.queue.record(held=True)], durable=True, state="held")
        finally:
            self._ending = False

    async def _run(self, job: Job) -> str:
        try:
            plan = await self._planner.plan(self, job.input)
            if job.input is None:
                return await self._run_compaction(job, plan)
            return await self._run_input(job, job.input, plan)
        except Exception as error:
            told = job.told
            job.fail(self.ledger.failure or error)
            if self.ledger.failure is not None:
                raise
            if told:
                log.exception("run %s of session %s failed", job.run, self.id)
                await self._end_broken(job)
            return "error"
        except BaseException as error:
            job.fail(error)
            raise
        finally:
            self._current = None
            self.is_aborting = False

    async def _end_broken(self, job: Job) -> None:
        """End a run that a fault of ours has cut, so that nobody waits for `done` and the history stays legal."""
        transcript = self.ledger.transcript
        if job.input is not None and job.input.id in transcript.waiting:
            self.queue.put_back(job)
        now = rfc3339()
        note = records.Note(time=now, level="error", text=BROKEN)
        items = [*cut_results(transcript.repairs(now)), Shown(note, [events.Error(BROKEN), events.Done(run=job.run)])]
        await self.ledger.write(items, durable=False, state=self.ledger.rest)

    async def _run_input(self, job: Job, first: records.Input, plan: Plan) -> str:
        driver = Driver(job.run, self.ledger, plan)
        self._take(driver)
        if job.stored:
            return await driver.run(Start(first, new=False, before=self.queue.started))
        answer = Started(started=True, input=first.id, run=job.run)
        return await driver.run(Start(first, new=True, accepted=lambda: job.answer(answer)))

    async def _run_compaction(self, job: Job, plan: Plan) -> str:
        compacting = Compacting(job.run, self.ledger, plan, instructions=job.instructions)
        self._take(compacting)
        job.answer(Started(started=True, run=job.run))
        return await compacting.run()

    def _take(self, current: Driver | Compacting) -> None:
        self._current = current
        if self.is_aborting:
            current.abort()

    def _answer_again(self, request: Request, first: records.Input, accepted: Callable[[Started], None]) -> None:
        if request.digest != first.digest:
            raise CommandError(Code.DUPLICATE_KEY, "this request_id was used for another request; make a new one")
        accepted(Started(started=first.id not in self.ledger.transcript.waiting, input=first.id))

    def _refuse_when_blocked(self) -> None:
        if self._stopping:
            raise CommandError(Code.SHUTTING_DOWN, "zot is stopping; send it again to the next one")
        if self.ledger.failure is not None:
            raise CommandError(Code.STORAGE_BLOCKED, f"nothing can be stored: {self.ledger.failure}")
        if self.ledger.damage is not None:
            raise CommandError(Code.BLOCKED, str(self.ledger.damage))


def _told_before(_: Started) -> None:
    """The sender of an input from before a restart has had its answer."""
