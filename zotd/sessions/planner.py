"""Prepares runs: reads the surroundings, composes the system prompt, chooses tools, opens the model."""

import asyncio
import logging
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from zotd.clock import rfc3339
from zotd.config import Config
from zotd.config.sections import LimitsSection
from zotd.contributions.guards import Hooks
from zotd.contributions.toolbox import Toolbox, choose, unknown
from zotd.core import prompts, records
from zotd.core.permissions import Policy
from zotd.core.ports import Probe, ToolContext
from zotd.core.retry import RetryPolicy
from zotd.ledger.spending import Spending
from zotd.permissions.authorization import Authorization, AuthorizationContext
from zotd.permissions.rules import RuleStore, WorkspaceRules
from zotd.runs.context import RunContext
from zotd.sessions.extension_pool import ExtensionPool
from zotd.sessions.models import ModelChooser
from zotd.sessions.session import Session
from zotd.tools.skill import Skill, find_skills
from zotd.wire.content import Tokens
from zotd.workspace import context
from zotd.workspace.context import ContextPaths, WorkspaceContext
from zotd.workspace.environment import Environment

READ_S = 5.0
"""Longest wait for AGENTS.md and skills; local files take a millisecond, a dead network mount for ever."""

log = logging.getLogger(__name__)

BUILTIN_SKILLS = Path(__file__).parent.parent / "skills"


@dataclass(frozen=True, slots=True)
class Machine:
    """What a planner knows of the machine, which no configuration changes."""

    home: Path
    """`$ZOT_HOME`."""
    user: Path
    """The user's home directory."""
    notify: Callable[[str], None] = lambda _: None
    """Sends this sentence to a user who is not looking; returns at once."""
    probe: Probe | None = None
    """Called at the points of each run, `runs.runner.POINTS`."""


class Planner:
    """`sessions.session.RunPlanner` for real."""

    def __init__(
        self,
        models: ModelChooser,
        extension_pool: ExtensionPool,
        spending: Spending,
        rules: RuleStore,
        *,
        config: Callable[[], Config],
        machine: Machine,
    ) -> None:
        """`config`: the configuration that holds now; a run keeps the values that it began with."""
        self._models = models
        self.extension_pool = extension_pool
        """The extensions of all sessions."""
        self._spending = spending
        self.rules = rules
        """The permission rules of all sessions."""
        self._config = config
        self._machine = machine

    def check(self, settings: records.Settings, environment: Environment, spent: Tokens) -> None:
        """Raise CommandError when a run could not start for want of a key, or of what a budget has left.

        `spent`: by the session so far (`Row.spent`).
        """
        self._models.check(settings, environment)
        self._spending.check(settings, spent)

    async def plan(self, session: Session, first: records.Input | None) -> RunContext:
        """What the session's next run works with."""
        row = session.ledger.row
        extensions = self.extension_pool.join(session)
        if extensions is not None and not session.work.is_aborting:
            await extensions.ready_for_run()
        toolbox = partial(extensions.toolbox, row.settings) if extensions else partial(choose, row.settings)
        places = await self._places(session)
        surroundings, skills = await _read(places)
        tools = toolbox()
        parts = prompts.PromptParts(
            cwd=row.cwd,
            date=rfc3339()[:10],
            base=row.settings.system_prompt if row.settings.system_prompt is not None else surroundings.system,
            appended=row.settings.append_system_prompt,
            context_files=surroundings.context_files,
            skills=skills if "skill" in tools.tools else (),
        )
        config = self._config()
        hooks = extensions.hooks(streams=config.guard.stream) if extensions else None
        ground = await self._ground(session)
        notes = [*surroundings.notes, *([ground.note] if ground.note else [])]
        return RunContext(
            model=await self._models.open(row.settings, session.environment),
            settings=row.settings,
            toolbox=toolbox,
            system=prompts.compose(parts),
            compact_at=config.compact_at,
            tool_context=self._tool_context(session, places),
            notes=[*notes, *(extensions.hints() if extensions else ()), *_missing(row.settings, tools)],
            hooks=hooks,
            authorization=self._authorization(session, hooks, ground, unattended=first.unattended if first else None),
            spending=self._spending,
            retries=_retries(config.limits, first),
            opening=first.opening if first else None,
            absent=extensions.resolution.absent if extensions else lambda _: "",
            probe=self._machine.probe,
        )

    async def authorization(self, session: Session, hooks: Hooks) -> Authorization:
        """Return the permission check for calls that no model makes. It never waits for a person."""
        return self._authorization(session, hooks, await self._ground(session), unattended="deny")

    async def tool_context(self, session: Session) -> Callable[[str, Callable[[str], None]], ToolContext]:
        """Return `RunContext.tool_context` for calls that no model makes."""
        return self._tool_context(session, await self._places(session))

    async def skills(self, session: Session) -> list[Skill]:
        """Those that its model may use, by name; none when the disk does not answer, or it has no tool to read them."""
        if "skill" not in choose(session.ledger.row.settings).tools:
            return []
        dirs = (await self._places(session)).skill_dirs()
        with suppress(TimeoutError):
            async with asyncio.timeout(READ_S):
                return await asyncio.to_thread(find_skills, dirs, log.debug)
        return []

    async def _ground(self, session: Session) -> WorkspaceRules:
        return await self.rules.survey(
            session.ledger.row.cwd,
            home=session.environment.variables.get("HOME"),
            is_trusted=await self.extension_pool.grants(session),
        )

    def _authorization(
        self, session: Session, hooks: Hooks | None, ground: WorkspaceRules, *, unattended: str | None
    ) -> Authorization:
        approval = self._config().approval

        def policy() -> Policy:
            mode = session.ledger.row.settings.mode
            return self.rules.policy(ground, mode=mode, granted=session.approvals.granted())

        context = AuthorizationContext(
            policy=policy,
            approvals=session.approvals,
            cwd=session.ledger.row.cwd,
            home=session.environment.variables.get("HOME"),
            run=lambda: session.ledger.transcript.run,
            recorded=partial(_recorded, session),
            way=approval.unattended,
            notify=self._machine.notify,
            ttl_s=approval.ttl_s,
        )
        return Authorization(context, hooks, unattended=unattended)

    async def _places(self, session: Session) -> ContextPaths:
        return ContextPaths(
            home=self._machine.home,
            user=self._machine.user,
            builtin_skills=BUILTIN_SKILLS,
            cwd=Path(session.ledger.row.cwd),
            trusted=await self.extension_pool.grants(session),
            extension_skills=tuple(session.extensions.skills()) if session.extensions else (),
        )

    def _tool_context(
        self, session: Session, places: ContextPaths
    ) -> Callable[[str, Callable[[str], None]], ToolContext]:
        row = session.ledger.row
        out_dir, ledger = (
            os.fspath(self._machine.home / "out" / row.id),
            os.fspath(self._machine.home / "run" / "children"),
        )
        skill_dirs = tuple(places.skill_dirs())

        def context(call_id: str, progress: Callable[[str], None]) -> ToolContext:
            return ToolContext(
                session=row.id,
                call_id=call_id,
                cwd=row.cwd,
                env=session.environment.variables,
                out_dir=out_dir,
                progress=progress,
                skill_dirs=skill_dirs,
                ledger=ledger,
                home=os.fspath(self._machine.home),
            )

        return context


def _retries(limits: LimitsSection, first: records.Input | None) -> RetryPolicy:
    """How long the run waits for a model that fails: as configured, unless its sender is less patient."""
    wanted = first.patience_s if first else None
    patience_s = limits.retry_patience_s
    return RetryPolicy(patience_s if wanted is None else min(wanted, patience_s), limits.retry_pause_s)


def _recorded(session: Session, call: str, digest: str) -> str | None:
    rows = session.ledger.transcript.approvals.values()
    return next((row.id for row in rows if row.call_id == call and row.args_digest == digest), None)


def _missing(settings: records.Settings, toolbox: Toolbox) -> list[str]:
    """Return a sentence about requested tools that do not exist."""
    names = unknown(settings, toolbox)
    there = ", ".join(toolbox.tools) or "none"
    return [f"there is no tool {', '.join(names)}; the tools here are: {there}"] if names else []


async def _read(places: ContextPaths) -> tuple[WorkspaceContext, list[prompts.SkillLine]]:
    """The surroundings and the skills; without them when the disk does not answer."""
    try:
        async with asyncio.timeout(READ_S):
            return await asyncio.to_thread(_read_now, places)
    except TimeoutError:
        note = f"the instructions around {places.cwd} could not be read within {READ_S:g} s and are left out"
        return WorkspaceContext(None, (), (note,)), []


def _read_now(places: ContextPaths) -> tuple[WorkspaceContext, list[prompts.SkillLine]]:
    skills = [prompts.SkillLine(skill.name, skill.description) for skill in find_skills(places.skill_dirs())]
    return context.read(places), skills
