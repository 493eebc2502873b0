"""Built-in tools that not all sessions have.

`task` where there may be subagents, `web_search` where an engine is chosen, those for jobs, `wake_later` where there are timers.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial

from zotd.config.current import CurrentConfig
from zotd.contributions.toolbox import Toolbox
from zotd.core.ports import Tool, ToolContext, ToolOutcome
from zotd.core.subagents import NAME as TASK
from zotd.core.subagents import TaskOrder
from zotd.core.wakes import NAME as WAKE_LATER
from zotd.core.wakes import WakeOrder
from zotd.core.web_access import SearchEngine
from zotd.sessions.models import ModelChooser
from zotd.sessions.search_engines import engine_of, searches
from zotd.sessions.session import Session
from zotd.tools import wake_later, web_search
from zotd.tools.jobs import NAMES as JOB_TOOLS
from zotd.tools.task import task_tool
from zotd.wire.jobs import RUNNING

Delegate = Callable[[Session, TaskOrder, ToolContext], Awaitable[ToolOutcome]]
"""Has a subagent of the session do a task."""


Wake = Callable[[Session, WakeOrder, str], Awaitable[str]]
"""Has the model of the session woken, as the call with this id wants; returns what it is told."""


Resume = Callable[[Session], Awaitable[None]]
"""Follows the subagents again that work in the background of the session."""


class ToolOffers:
    """Decides which of these tools a session has, and what they work with."""

    def __init__(self, config: CurrentConfig, models: ModelChooser) -> None:
        """`config`: the configuration that holds now."""
        self._config = config
        self._models = models
        self._delegate: Delegate | None = None
        self._resume: Resume = _nothing
        self._wake: Wake | None = None

    def connect_timers(self, wake: Wake) -> None:
        """Have models woken by `wake`; without it they cannot be."""
        self._wake = wake

    def connect(self, delegate: Delegate, resume: Resume) -> None:
        """Have subagents run by `delegate`; without it sessions have none."""
        self._delegate = delegate
        self._resume = resume

    async def resume_tasks(self, session: Session) -> None:
        """Follow the subagents in the background again that an earlier daemon has begun; the session is loaded."""
        if any(job.session and job.state == RUNNING for job in session.ledger.row.jobs):
            await self._resume(session)

    def of(self, session: Session, agents: Sequence[tuple[str, str]]) -> Callable[[Toolbox], Toolbox]:
        """Return what gives a toolbox the tools of this session; `agents`: names and descriptions of agent types."""
        offers: dict[str, Tool | None] = {
            TASK: task_tool(agents) if self._delegates(session) else None,
            web_search.NAME: web_search.TOOL if self._searches(session) else None,
            WAKE_LATER: None if self._wake is None or not can_have_timers(session) else wake_later.TOOL,
        }
        if not self._config.value.jobs.at_once:
            offers |= dict.fromkeys(JOB_TOOLS)
        return partial(with_offers, offers=offers)

    def delegate_of(self, session: Session) -> Callable[[TaskOrder, ToolContext], Awaitable[ToolOutcome]] | None:
        """Return what has a subagent do a task; None: the session may have none."""
        return partial(self._delegate, session) if self._delegate is not None and self._delegates(session) else None

    def wake_of(self, session: Session) -> Callable[[WakeOrder, str], Awaitable[str]] | None:
        """Return what has the model of the session woken; None: nothing can."""
        return partial(self._wake, session) if self._wake is not None and can_have_timers(session) else None

    def engine_of(self, session: Session) -> SearchEngine | None:
        """Return what answers the searches of the session at the moment; None: nothing does."""
        return engine_of(self._config.value, session.environment, self._models) if self._searches(session) else None

    def _searches(self, session: Session) -> bool:
        return searches(self._config.value, session.ledger.row.settings.mode)

    def _delegates(self, session: Session) -> bool:
        # What is not stored could not find its subagents again after a crash.
        if self._delegate is None or session.ephemeral:
            return False
        parent = session.ledger.row.parent
        return (0 if parent is None else parent.depth) < self._config.value.agents.depth


def can_have_timers(session: Session) -> bool:
    """Return whether the model of the session may be woken: a subagent ends with its answer, and others are not stored."""
    return not session.ephemeral and session.ledger.row.parent is None


def with_offers(box: Toolbox, offers: Mapping[str, Tool | None]) -> Toolbox:
    """Return the toolbox with these tools in the places of the built-in ones of their names; None: without that one.

    An extension may have a tool of such a name, which stays.
    """
    built_in = {name for name in offers if (one := box.tools.get(name)) is not None and one.extension is None}
    changed = {name: offers[name] for name in built_in if offers[name] is not box.tools[name]}
    if not changed:
        return box
    tools = {name: changed.get(name, one) for name, one in box.tools.items()}
    kept = {name: one for name, one in tools.items() if one is not None}
    specs = tuple(kept[spec.name].spec if spec.name in changed else spec for spec in box.specs if spec.name in kept)
    return Toolbox(kept, specs, box.hidden)


async def _nothing(_: Session) -> None:
    """Nothing runs subagents."""
