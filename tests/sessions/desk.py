"""One session with its neighbours in memory: a planner that the test holds back, and somebody who watches."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

from zotd.config import Config
from zotd.config.current import CurrentConfig
from zotd.config.sections import CheckpointsSection
from zotd.contributions.toolbox import Toolbox
from zotd.core.permissions import Policy
from zotd.core.ports import Model, SessionRow, Tool, ToolContext
from zotd.core.records import Settings
from zotd.core.retry import RetryPolicy
from zotd.core.run_watch import Unwatched
from zotd.core.transcript import Transcript
from zotd.ledger.ledger import Ledger
from zotd.permissions.approvals import SessionApprovals
from zotd.permissions.authorization import Authorization
from zotd.permissions.authorization_context import AuthorizationContext
from zotd.runs.context import RunContext
from zotd.runs.early_summary import EarlyRequest
from zotd.runs.model_ladder import OnlyModel, OpenedModel
from zotd.sessions.job_ground import JobGround
from zotd.sessions.session import Session
from zotd.wire import events
from zotd.workspace.environment import Environment
from zotd.workspace.session_checkpoints import CheckpointKeeper

TIME = "2026-11-21T20:11:18.919Z"


def new_row():
    return SessionRow("s_1", "", "/", TIME, TIME, Settings(provider="p", model="m"), "idle")


def clearance(ledger, hooks=None, mode="yolo"):
    """Of a session in which everything may run, as far as the guards say nothing else."""
    bench = AuthorizationContext(
        policy=lambda: Policy(mode),
        approvals=SessionApprovals(ledger, changed=lambda: None),
        cwd="/",
        home="/",
        run=lambda: ledger.transcript.run,
        recorded=lambda *_: None,
        way="park",
        notify=lambda _: None,
    )
    return Authorization(bench, hooks or (lambda: None))


def plan(ledger, model, tools: Mapping[str, Tool], hooks=None):
    """Of a run with these tools."""
    return RunContext(
        models=OnlyModel(OpenedModel("p", "m", model), RetryPolicy()),
        settings=ledger.row.settings,
        toolbox=lambda: Toolbox(tools, (), {}),
        system="",
        compact_at=0.85,
        tool_context=lambda key, progress: ToolContext("s_1", key, "/", {}, "/nowhere", progress),
        authorization=clearance(ledger, hooks),
        hooks=hooks or (lambda: None),
    )


def no_checkpoints():
    """For sessions whose files are not recorded."""
    return CheckpointKeeper("/nowhere", CurrentConfig(Config(checkpoints=CheckpointsSection(enabled=False))))


def never_early(ledger):
    """The early summaries of a session whose plan asks for none."""

    def spawn(name, coroutine):
        raise AssertionError(name)

    return EarlyRequest(ledger, spawn=spawn, ended=lambda: None)


@dataclass
class Desk:
    """A planner that waits for `ready`."""

    model: Model
    tools: Mapping[str, Tool] = field(default_factory=dict)
    ready: asyncio.Event = field(default_factory=asyncio.Event)
    planning: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while it waits."""
    fault: Exception | None = None
    """What the next `plan` raises instead."""
    keeper: CheckpointKeeper = field(default_factory=no_checkpoints)
    job_ground: JobGround = field(default_factory=lambda: JobGround(None, CurrentConfig(Config())))

    def check(self, settings, environment, spent):
        pass

    def watch(self, ledger, environment):
        del ledger, environment
        return Unwatched()

    async def plan(self, session, first):
        del first
        fault, self.fault = self.fault, None
        if fault is not None:
            raise fault
        if not self.ready.is_set():
            self.planning.set()
            await self.ready.wait()
        return plan(session.ledger, self.model, self.tools)


def session_of(row, journal, desk, spawn):
    """A session as the daemon has it; `load` it when the journal has something of it."""
    ledger = Ledger(row, journal, Transcript(), addressed=True)
    return Session(ledger, Environment({}), desk, spawn=spawn, changed=lambda _: None, stored_queue=True)


class Watcher:
    """Everything that a session shows."""

    def __init__(self):
        self.events: asyncio.Queue[events.Event] = asyncio.Queue()

    def early(self, shown, data, seq):
        del shown, data, seq
        return False

    def committed(self, shown, data, last_seq):
        del data, last_seq
        for event in shown:
            self.events.put_nowait(event)

    def live(self, shown, data):
        self.committed(shown, data, 0)

    async def until(self, kind):
        found = [await self.events.get()]
        while not isinstance(found[-1], kind):
            found.append(await self.events.get())
        return found
