"""One conversation: takes inputs one after the other, runs them, and tells everybody who follows.

    idle -> running -> idle            a run or a compaction, and the next one that waits
    running -> waiting -> running      a person is asked about a call
    running -> held                    a run was cut by a crash, or one failed or was aborted while inputs waited
    held -> running                    `/continue`, or the next prompt

Whatever changes the session is decided in one synchronous step and awaited afterwards, so commands that arrive in
an order take effect in it.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import NamedTuple, Protocol

from zotd import ids
from zotd.clock import rfc3339
from zotd.contributions.view import Extensions
from zotd.core import records
from zotd.core.ports import SessionRow
from zotd.core.run_watch import RunWatch
from zotd.ledger.ledger import Ledger, LetGoError, Shown
from zotd.permissions.approvals import SessionApprovals
from zotd.permissions.pending import lasting
from zotd.permissions.session_jail import SessionJail
from zotd.runs.context import RunContext
from zotd.runs.queue import STEER, Job, Queue, SubmitRequest, content_of
from zotd.runs.recovery import GO_ON
from zotd.runs.side_question import SideQuestions
from zotd.runs.worker import Activity, Intake, Worker
from zotd.sessions.agent_settings import check_changes, check_own
from zotd.sessions.children import Children
from zotd.sessions.clearing import clear
from zotd.sessions.client_files import ClientFiles
from zotd.sessions.client_terminals import ClientTerminals
from zotd.sessions.job_ground import JobGround
from zotd.sessions.jobs import SessionJobs
from zotd.sessions.loading import Loading, repeated, rest_of
from zotd.sessions.plans import PlanKeeper
from zotd.wire import events
from zotd.wire.api import Approve, PromptImage, Started
from zotd.wire.errors import Code, CommandError
from zotd.workspace.environment import Environment
from zotd.workspace.session_checkpoints import CheckpointKeeper

DECIDED = "the decision is recorded, but the run does not continue"

NOTHING_TO_CONTINUE = "there is nothing to continue: the last run ended by itself; send a prompt"


class RunPlanner(Protocol):
    """Prepares runs."""

    keeper: CheckpointKeeper
    job_ground: JobGround

    def check(self, settings: records.Settings, environment: Environment, row: SessionRow | None) -> None:
        """Raise CommandError when no run could start, such as for want of a key. Quick."""
        ...

    def watch(self, ledger: Ledger, environment: Callable[[], Mapping[str, str]]) -> RunWatch:
        """Return what follows the runs of a session from now on; `environment` returns that of its client."""
        ...

    async def plan(self, session: "Session", first: records.Input | None) -> RunContext:
        """What the next run works with; `first` is its input, None for a compaction or a run that goes on."""
        ...


class Editors(NamedTuple):
    """What clients that are editors bring."""

    files: ClientFiles
    """Files that are open there."""
    terminals: ClientTerminals
    """Terminals in which commands may run."""


class Session:
    """A conversation. Methods that change it raise CommandError for the sender, StorageError from the journal."""

    extensions: Extensions | None = None
    """Its extensions while the session is needed; `sessions.extension_pool` attaches them."""
    is_quieted = False
    """A person aborted and has asked for nothing since: extensions may not submit prompts."""
    is_closed = False
    """It accepts no commands: it is being closed, or was; see `sessions.closing`."""

    def __init__(
        self,
        ledger: Ledger,
        environment: Environment,
        planner: RunPlanner,
        *,
        spawn: Callable[[str, Coroutine[object, object, None]], None],
        changed: Callable[["Session"], None],
        stored_queue: bool,
        ephemeral: bool = False,
    ) -> None:
        """`spawn` runs a named coroutine in a task whose owner outlives the session; `changed` is called with the session whenever its state changes.

        `stored_queue`: a waiting input is recorded and answered at once, and held after a failed run; on stdio it is
        neither, its answer comes when it starts.
        """
        self.id = ledger.row.id
        self.ledger = ledger
        self.ephemeral = ephemeral
        """It has no journal on disk and ends with its last client."""
        self.holders: set[object] = set()
        """Connections that keep an ephemeral session although they do not follow it: those that created it."""
        self.environment = environment
        """The environment and keys that runs use: of the client that sent its own last, else of the daemon."""
        self.watch = planner.watch(ledger, self._variables)
        """Follows its runs, for figures and traces."""
        self.checkpoints = planner.keeper.of(
            self.id, ledger.row.cwd, environment=self._variables, told=self._warn, is_stored=not ephemeral
        )
        """The recorded states of its directory's files."""
        self._planner = planner
        self._stored_queue = stored_queue
        self._changed = changed
        self.approvals = SessionApprovals(ledger, changed=partial(changed, self))
        """Questions to people about its calls."""
        self.children = Children(partial(changed, self))
        """Subagents that its calls wait for."""
        self.side = SideQuestions(ledger, partial(changed, self))
        """Questions of people beside the conversation."""
        self.plan = PlanKeeper(ledger, self.approvals, check=self._refuse_when_blocked, changed=partial(changed, self))
        """The plan that people and the model change."""
        self.work = Worker(
            ledger,
            plan=partial(planner.plan, self),
            spawn=spawn,
            changed=partial(changed, self),
            closing=self.approvals.cancel,
            hurry=self._hurry,
        )
        """What it does; ask, and change it through the session."""
        self.jobs = SessionJobs(
            ledger, planner.job_ground, spawn=spawn, changed=partial(changed, self), is_stored=not ephemeral
        )
        """Its commands in the background."""
        self.jail = SessionJail(self._warn)
        """What its calls are confined to in the mode `workspace`; its manager closes it."""
        self.editors = Editors(ClientFiles(ledger.label, self._warn), ClientTerminals(ledger.label, self._warn))
        """What clients that are editors bring."""
        self._loading = Loading(ledger, self.work.queue, self.approvals, self.jobs)

    # --- what it is -------------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """`running`, `waiting` (for a person's decision), `held`, `blocked` or `idle`."""
        if self.ledger.failure is not None or (self.ledger.damage is not None and not self.work.is_active):
            return "blocked"
        if self.approvals.shown or self.children.asked:
            return "waiting"
        if self.work.is_active and (self.work.activity is not Activity.ENDING or len(self.work.queue)):
            return "running"
        if not self.ledger.loaded or self._loading.is_going_on:  # not loaded, or its approvals are not restored yet
            return "held" if self.ledger.row.state == "running" else self.ledger.row.state
        found = self.ledger.transcript
        return "held" if found.held or found.interrupted else "idle"

    @property
    def _outlasts(self) -> bool:
        """A person is asked about a call of the model's, or a subagent can be resumed: both are there after a restart."""
        if self.children.outlasts:
            return True
        return any(one.approval in lasting(self.ledger.transcript) for one in self.approvals.pending())

    @property
    def is_cut(self) -> bool:
        """A crash may have interrupted it or its jobs, or inputs are queued, and it was not loaded since: `load` it."""
        ledger = self.ledger
        if ledger.failure is not None or ledger.damage is not None:
            return False
        if self._loading.is_going_on:  # a command repairs it, and what it has found may not be shown yet
            return True
        return not ledger.loaded and (ledger.row.state != "idle" or self.jobs.has_lost)

    def use_environment(self, environment: Environment) -> None:
        """Use the environment and keys of a client from the next run on."""
        self.environment = environment

    # --- loading ----------------------------------------------------------------------------------------------

    async def load(self) -> None:
        """Have the transcript in memory; after a crash, give every cut call its result and say what was cut."""
        await self._loading.load()

    async def reload(self, row: SessionRow) -> None:
        """Begin anew from what the journal holds, when it could not write; followers, environment and keys stay."""
        await self._loading.reload(row)
        if self.checkpoints.sync is not None:
            self.checkpoints.sync.restored()

    # --- inputs -----------------------------------------------------------------------------------------------

    async def prompt(
        self,
        message: str,
        images: Sequence[PromptImage],
        *,
        sender: str,
        when_busy: str,
        accepted: Callable[[Started], None],
        request: SubmitRequest | None = None,
        opening: records.Opening | None = None,
    ) -> None:
        """Take an input; `accepted` is called when it is safe on disk, before any event that it causes.

        A `request` that is in the journal already, from before a restart, is only answered.
        """
        self._refuse_when_blocked()
        if request is not None and (first := request.known(self.ledger.transcript)) is not None:
            accepted(Started(started=first.input not in self.ledger.transcript.waiting, input=first.input))
            return
        self._planner.check(self.ledger.row.settings, self.environment, self.ledger.row)
        if opening is not None:
            check_own(self.ledger.row.settings, "calls that begin a prompt")
        self.is_quieted = False
        content = content_of(message, images)
        waits = self.work.is_active or len(self.work.queue) > 0
        if waits and when_busy == "reject":
            raise CommandError(Code.BUSY, "the session is busy; wait, or send the prompt with when_busy=queue")
        self.ledger.title(message)
        record = records.Input(
            time=rfc3339(),
            id=ids.new("i"),
            content=content,
            sender=sender,
            mode=STEER if when_busy == STEER and not self.ledger.row.settings.agent else "queue",
            request_id=request.id if request else None,
            digest=request.digest if request and request.id else None,
            opening=opening,
            unattended=request.unattended if request else None,
            patience_s=request.patience_s if request else None,
            allowed_tools=request.allowed_tools if request else None,
        )
        if self.extensions is not None and self.extensions.resolution.extensions:
            self.extensions.subscriptions.prompted(message, queued=waits, images=len(images))
        if waits and self._stored_queue:
            await self._enqueue(Job(accepted, record, stored=True), record)
        else:
            await self.work.enter(Job(accepted, record))

    async def go_on(self, *, accepted: Callable[[Started], None]) -> None:
        """Go on with the run that was cut, failed or was aborted, and then with what waits; `accepted` as above."""
        self._refuse_when_blocked()
        if (
            self.work.is_active and self.work.activity is not Activity.HOLDING
        ):  # else it goes on as soon as that is on disk
            raise CommandError(Code.BUSY, "the session is already running")
        self._planner.check(self.ledger.row.settings, self.environment, self.ledger.row)
        transcript = self.ledger.transcript
        if not transcript.can_resume and not self.work.queue.items():
            raise CommandError(Code.CONFLICT, NOTHING_TO_CONTINUE)
        self.is_quieted = False
        self.work.continue_after_abort()
        if not transcript.held:
            await self.work.enter(Job(accepted, resumes=True), first=True)
            return
        run = None
        if transcript.can_resume:
            # Stored: its sender is told now, with the order that lets everything go on.
            job = Job(accepted, resumes=True, stored=True)
            run = job.run
            self.work.queue.put_first(job)
        first = self.work.queue.items()[0].id if run is None else None
        answer = Started(started=True, input=first, run=run)
        order = self.work.queue.record(held=False)
        told = self.ledger.write([order], durable=True, state="running", accepted=lambda: accepted(answer))
        self.work.wake()
        await told

    async def compact(self, instructions: str, *, accepted: Callable[[Started], None]) -> None:
        """Summarise the transcript when it is its turn; `accepted` is called when it starts."""
        check_own(self.ledger.row.settings, "summary of its own")
        self._refuse_when_blocked()
        self._planner.check(self.ledger.row.settings, self.environment, self.ledger.row)
        await self.work.enter(Job(accepted, instructions=instructions))

    def abort(self, *, for_good: bool = False) -> None:
        """Cancel what runs now; nothing happens when nothing does.

        `for_good`: and start nothing more, because the process ends. What is stored waits for the next one.
        """
        self.is_quieted = True
        if for_good and self._outlasts:
            self.approvals.freeze()  # the question outlives this process; its run is cut as by a crash
            self.work.refuse_jobs()
            self.work.early.cancel()
            return
        if not for_good and self.approvals.requests:
            self.approvals.cancel()  # before the run ends, and also of one that a crash has cut
        self.work.abort(for_good=for_good)

    async def change_queue(self, change: Callable[[Queue], None], *, accepted: Callable[[], None]) -> None:
        """Withdraw or move inputs that wait; `change` does it at once."""
        change(self.work.queue)
        held = self.ledger.transcript.held and bool(self.work.queue.items())
        rest = rest_of(self.approvals, held=held or self.ledger.transcript.interrupted)
        state = self.ledger.row.state if self.work.is_active else rest
        await self.ledger.write([self.work.queue.record(held=held)], durable=True, accepted=accepted, state=state)

    async def decide(self, params: Approve, by: str, *, accepted: Callable[[], None]) -> None:
        """Take a person's decision about a call. When it was the last one that a cut run waits for, that goes on."""
        if (decide := self.children.decider_of(params.approval)) is not None:
            await decide(params, by, accepted=accepted)
            return
        self._refuse_when_blocked()  # a call that starts while the process ends would be cut at once
        await self.approvals.decide(params, by, accepted)
        waits = bool(self.approvals.pending()) or self.work.is_active
        if self.ledger.transcript.interrupted and not waits:
            try:
                await self.go_on(accepted=repeated)
            except CommandError as error:  # the decider already has its answer, so all clients are told
                text = f"{DECIDED}: {error.sentence}; {GO_ON}"
                self.ledger.live([events.Notice("error", text, session=self.ledger.label)])

    async def stopped(self) -> None:
        """Wait until nothing runs but what waits for a person while the process ends."""
        await self.work.early.ended.wait()
        if not self.approvals.is_frozen:
            await self.work.stopped()

    # --- settings ---------------------------------------------------------------------------------------------

    async def configure(
        self, settings: records.Settings, name: str, *, accepted: Callable[[], None], changes: events.SessionChanged
    ) -> None:
        """Settings and a name from the next run on; `changes` is the event that tells of them."""
        self._refuse_when_blocked()
        old = self.ledger.row.settings
        check_changes(old, settings)
        if self.work.is_active and (old.provider, old.model) != (settings.provider, settings.model):
            raise CommandError(Code.BUSY, "the session is busy; switch the model after the run, or abort it")
        if self.ledger.row.settings.planning:
            await self.load()  # to know what the model has not been told yet
        settings, ended = self.plan.mode_changed(settings)
        shown = Shown(records.ConfigRecord(time=rfc3339(), settings=settings, name=name), [changes])
        future = self.ledger.write([shown, *ended], durable=True, settings=settings, name=name, accepted=accepted)
        self._changed(self)
        await future

    async def clear(self, *, accepted: Callable[[], None]) -> None:
        """Start the transcript anew; people still see the old one."""
        self._refuse_when_blocked()
        if self.work.is_active:
            raise CommandError(Code.BUSY, "the session is busy; clear it after the run, or abort it")
        self.approvals.cancel()
        await clear(self.ledger, accepted)
        if self.extensions is not None:
            self.extensions.ui_state.clear_notes()

    # --- working ----------------------------------------------------------------------------------------------

    async def _enqueue(self, job: Job, record: records.Input) -> None:
        """Store an input behind those that wait, and answer its sender."""
        self.work.queue.add(job, held=self.ledger.transcript.held)
        self.work.continue_after_abort()
        position = len(self.work.queue.items())
        order = self.work.queue.record(held=False)
        future = self.ledger.write(
            [Shown(record), order],
            durable=True,
            accepted=lambda: job.accepted(Started(started=False, input=record.id, position=position)),
            state="running",
        )
        self.work.wake()
        await future

    def _variables(self) -> Mapping[str, str]:
        return self.environment.variables

    def _warn(self, text: str) -> None:
        self.ledger.live([events.Notice("warn", text, session=self.ledger.label)])

    def _hurry(self) -> None:
        if self.extensions is not None:
            self.extensions.hurry()

    def _refuse_when_blocked(self) -> None:
        if self.is_closed or self.ledger.is_let_go:
            raise CommandError(Code.CONFLICT, str(LetGoError(self.id)))
        if self.work.intake is not Intake.OPEN:
            raise self.work.intake.refusal()
        if self.ledger.failure is not None:
            raise CommandError(Code.STORAGE_BLOCKED, f"the journal cannot be written: {self.ledger.failure}")
        if self.ledger.damage is not None:
            raise CommandError(Code.BLOCKED, str(self.ledger.damage))
