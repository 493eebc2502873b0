"""Prepares runs: reads the surroundings, composes the system prompt, chooses tools, opens the model."""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from zotd.config.current import CurrentConfig
from zotd.contributions.guards import Hooks, with_own_guard
from zotd.contributions.toolbox import Toolbox, choose, joined, missing
from zotd.contributions.view import Extensions
from zotd.core import prompts, records
from zotd.core.allowed_tools import limit_of
from zotd.core.permissions import WORKSPACE, Policy
from zotd.core.ports import SessionRow, Tool, ToolContext
from zotd.core.retry import RetryPolicy
from zotd.core.run_watch import RunWatch
from zotd.exthost.surroundings import About
from zotd.ledger.ledger import Ledger
from zotd.ledger.spending import Spending
from zotd.permissions.authorization import Authorization
from zotd.permissions.rules import NO_RULES, RuleStore, WorkspaceRules
from zotd.runs.context import RunContext
from zotd.runs.model_ladder import ModelSource, OnlyModel, OpenedModel
from zotd.sessions.admission import NOTHING_ADDED, admitted_prompt
from zotd.sessions.authorization_site import authorization_context
from zotd.sessions.edit_checks import EditChecks
from zotd.sessions.extension_pool import ExtensionPool
from zotd.sessions.jail_site import jail_problems
from zotd.sessions.job_ground import JobGround
from zotd.sessions.machine import Machine
from zotd.sessions.models import ModelChooser
from zotd.sessions.other_agents import OtherAgents
from zotd.sessions.run_basis import PreparedRun, RunBasis, WorkspaceFiles, prompt_parts, read_files
from zotd.sessions.run_models import RunModels
from zotd.sessions.session import Session
from zotd.sessions.tool_offers import ToolOffers
from zotd.sessions.unavailable import NOT_OPENED
from zotd.sessions.workspace_arrival import arrive
from zotd.workspace.context import ContextPaths, WorkspaceContext
from zotd.workspace.environment import Environment
from zotd.workspace.session_checkpoints import CheckpointKeeper

TRACEPARENT = "TRACEPARENT"
"""Variable that names the span of a tool call to the programs that it starts, if traces are made."""

READ_S = 5.0
"""Longest wait for AGENTS.md and skills; local files take a millisecond, a dead network mount for ever."""

log = logging.getLogger(__name__)

BUILTIN_SKILLS = Path(__file__).parent.parent / "skills"


class Planner:
    """`sessions.session.RunPlanner` for real."""

    def __init__(
        self,
        models: ModelChooser,
        extension_pool: ExtensionPool,
        spending: Spending,
        rules: RuleStore,
        *,
        config: CurrentConfig,
        machine: Machine,
        edit_checks: EditChecks,
    ) -> None:
        """`config`: the configuration that holds now; a run keeps the values that it began with."""
        self._models = models
        self._run_models = RunModels(models, config)
        self.extension_pool = extension_pool
        """The extensions of all sessions."""
        self.spending = spending
        """The budgets of all sessions."""
        self.rules = rules
        """The permission rules of all sessions."""
        self.keeper = CheckpointKeeper(os.fspath(machine.home), config)
        self.edit_checks = edit_checks
        """Language servers that check edits."""
        self.offers = ToolOffers(config, models)
        """The built-in tools that not all sessions have."""
        self.job_ground = JobGround(machine.reaper, config)
        """What the jobs of all sessions have in common."""
        self.other_agents = OtherAgents(machine)
        """Those that run the turns of sessions."""
        self._config = config
        self._machine = machine
        self._last: dict[str, PreparedRun] = {}
        """By the session's id; without it, preparing a run took longer than sending its request."""
        self._said: dict[str, set[str]] = {}
        """By the session's id: what users were told of wishes that its models do not fulfil."""

    def watch(self, ledger: Ledger, environment: Callable[[], Mapping[str, str]]) -> RunWatch:
        """Return what follows the runs of a session from now on; `environment` returns that of its client."""
        return self._machine.watch(ledger, environment)

    def check(self, settings: records.Settings, environment: Environment, row: SessionRow | None) -> None:
        """Raise CommandError when a run could not start for want of a key, or of what a budget has left.

        `row`: of the session; None: there is none yet.
        """
        if not settings.agent:  # else the agent has its own login
            self._models.check(settings, environment)
        self.spending.check(row)

    async def plan(self, session: Session, first: records.Input | None) -> RunContext:
        """What the session's next run works with.

        Files, keys and trust are looked up for each run. What follows from them is computed when one of them differs.
        """
        if session.checkpoints.sync is not None:
            await arrive(session)
        if session.ledger.row.jobs:
            await self.offers.resume_tasks(session)
        is_trusted = _known_trust(session)
        if is_trusted is None:
            extensions = self.extension_pool.join(session)
            if extensions is not None and not session.work.is_aborting:
                await extensions.ready_for_run()
            is_trusted = await self.extension_pool.grants(session)
        extensions = session.extensions
        paths = self._paths(session, is_trusted)
        files = await _files(paths)
        ground = await self._ground(session, is_trusted)
        basis = RunBasis(
            settings=session.ledger.row.settings,
            environment=session.environment,
            config=self._config.value,
            extensions=extensions,
            revision=extensions.revision if extensions is not None else 0,
            paths=paths,
            files=files.digest,
            ground=ground,
        )
        said = self._said.setdefault(session.id, set())
        last = self._last.get(session.id)
        if last is None or last.basis != basis:
            last = self._last[session.id] = PreparedRun(basis, self._prepare(session, basis, files))
            notes = (*last.context.notes, *(extensions.hints() if extensions is not None else ()))
        else:
            notes = tuple(last.context.notes)
        models = await self._choice_of_models(basis, last.context, said, None if first is None else first.patience_s)
        admitted = NOTHING_ADDED
        if first is not None and (first.allowed_tools is not None or (extensions and extensions.resolution.extensions)):
            admitted = await admitted_prompt(extensions, first, basis.settings.mode)
        notes += (*self._news(said, last.context), *admitted.notes)
        context = replace(
            last.context,
            models=models,
            notes=notes,
            input_context=admitted.context,
            authorization=self._authorization_of_run(session, first, ground, last.context),
        )
        return self.other_agents.context(session, first, context) if basis.settings.agent else context

    def _authorization_of_run(
        self, session: Session, first: records.Input | None, ground: WorkspaceRules, context: RunContext
    ) -> Authorization:
        """Return that of the context, unless the input that the run began with wants something of its own."""
        unattended = None if first is None else first.unattended
        allowed = session.ledger.transcript.allowed_tools if first is None else first.allowed_tools
        if unattended is None and allowed is None:
            return context.authorization
        return self._authorization(session, context.hooks, ground, unattended=unattended, allowed=allowed)

    async def _choice_of_models(
        self, basis: RunBasis, context: RunContext, said: set[str], patience_s: float | None
    ) -> ModelSource:
        """What a run may ask; `patience_s`: how long its sender waits for a model that fails, None: as configured."""
        settings, environment, config = basis.settings, basis.environment, basis.config
        if settings.agent:
            return NOT_OPENED
        longest_s = config.limits.retry_patience_s
        patience = RetryPolicy(
            longest_s if patience_s is None else min(patience_s, longest_s), config.limits.retry_pause_s
        )
        model = await self._models.open(settings, environment, said)
        own = OpenedModel(settings.provider, settings.model, model)
        if not (config.fallback if settings.fallback is None else settings.fallback):
            return OnlyModel(own, patience)
        return self._run_models.of(own, settings, environment, patience=patience, toolbox=context.toolbox, told=said)

    def forget(self, session: Session) -> None:
        """The session leaves memory."""
        self._last.pop(session.id, None)
        self._said.pop(session.id, None)
        self.edit_checks.forget(session)
        self.other_agents.forget(session.id)

    def _news(self, said: set[str], context: RunContext) -> tuple[str, ...]:
        """A reasoning that the model does not do, if the session was not told of it yet.

        Images and tools are told by the request that has them: a tool may bring an image in the middle of a run.
        """
        if context.settings.reasoning == "off":
            return ()
        sentence = self._models.unmet(context.settings, has_tools=bool(context.toolbox().tools))
        if sentence is None or sentence in said:
            return ()
        said.add(sentence)
        return (sentence,)

    async def authorization(self, session: Session, hooks: Callable[[], Hooks | None]) -> Authorization:
        """Return the permission check for calls that no model makes. It never waits for a person."""
        ground = await self._ground(session, await self.extension_pool.grants(session))
        return self._authorization(session, hooks, ground, unattended="deny")

    async def tool_context(self, session: Session) -> Callable[[str, Callable[[str], None]], ToolContext]:
        """Return `RunContext.tool_context` for calls that no model makes; raises CommandError if the session's files are not here."""
        await arrive(session)
        return self._tool_context(session, await self.paths(session))

    def paths_in(self, cwd: str) -> ContextPaths:
        """Return where the surroundings of sessions in a directory are, if it is trusted."""
        home, user, claude = self._machine.home, self._machine.user, self._config.value.agents.claude
        return ContextPaths(
            home=home, user=user, builtin_skills=BUILTIN_SKILLS, cwd=Path(cwd), trusted=True, claude_agents=claude
        )

    async def paths(self, session: Session, *, anew: bool = False) -> ContextPaths:
        """Return where the surroundings of a session are, as its workspace is trusted; `anew`: look at its code now."""
        return self._paths(session, await self.extension_pool.grants(session, anew=anew))

    def _prepare(self, session: Session, basis: RunBasis, files: WorkspaceFiles) -> RunContext:
        """Compute what follows from the basis; the model is still to be opened."""
        extensions, settings = basis.extensions, basis.settings
        tools_of_program = self._machine.tools
        offered = self.offers.of(session, files.agents)
        own = offered(joined(choose(settings), tools_of_program))
        toolbox = partial(_toolbox, extensions, settings, own, of_program=tools_of_program, offered=offered)
        tools = toolbox()
        surroundings = files.context
        parts = prompt_parts(session.ledger.row, basis, files, tools)
        streams = basis.config.guard.stream
        hooks = partial(_hooks, extensions, streams=streams)
        note = basis.ground.note
        return RunContext(
            models=NOT_OPENED,
            settings=settings,
            toolbox=toolbox,
            system=prompts.compose(parts),
            system_digests=prompts.digests(parts),
            told_date=parts.date,
            cache=basis.config.cache,
            clock=self._machine.clock,
            compact_at=basis.config.compact_at,
            compact_early_at=basis.config.compact_early_at,
            tool_context=self._tool_context(session, basis.paths),
            notes=[
                *surroundings.notes,
                *([note] if note else []),
                *(jail_problems(basis.config, self.rules.rules) if settings.mode == WORKSPACE else ()),
                *missing(settings, tools),
            ],
            hooks=hooks,
            authorization=self._authorization(session, hooks, basis.ground, unattended=None),
            spending=self.spending,
            absent=extensions.resolution.absent if extensions else lambda _: "",
            checkpoints=session.checkpoints,
            probe=self._machine.probe,
        )

    async def _ground(self, session: Session, is_trusted: bool) -> WorkspaceRules:
        if not is_trusted and not self.rules.narrowing:
            return NO_RULES
        home = session.environment.variables.get("HOME")
        return await self.rules.survey(session.ledger.row.cwd, home=home, is_trusted=is_trusted)

    def _authorization(
        self,
        session: Session,
        hooks: Callable[[], Hooks | None],
        ground: WorkspaceRules,
        *,
        unattended: str | None,
        allowed: records.AllowedTools | None = None,
    ) -> Authorization:
        policy = self._policy(session, ground, allowed)
        context = authorization_context(session, policy, machine=self._machine, config=self._config)
        hooks = with_own_guard(hooks, self._machine.guard, About(session.id, session.ledger.row.cwd))
        return Authorization(context, hooks, unattended=unattended)

    def _policy(
        self, session: Session, ground: WorkspaceRules, allowed: records.AllowedTools | None
    ) -> Callable[[], Policy]:
        """Return what computes the policy as it is at the moment, and keeps it until something that it depends on changes."""
        limit = None if allowed is None else limit_of(allowed)
        last: tuple[object, Policy] | None = None

        def policy() -> Policy:
            nonlocal last
            row = session.ledger.row
            basis = row.settings.mode, self.rules.rules, row.granted
            if last is None or last[0] != basis:
                last = basis, self.rules.policy(ground, mode=row.settings.mode, granted=row.granted, limit=limit)
            return last[1]

        return policy

    def _paths(self, session: Session, is_trusted: bool) -> ContextPaths:
        extensions = session.extensions
        skills = extensions.skills() if extensions and extensions.resolution.extensions else ()
        return replace(self.paths_in(session.ledger.row.cwd), trusted=is_trusted, extension_skills=tuple(skills))

    def _tool_context(
        self, session: Session, paths: ContextPaths
    ) -> Callable[[str, Callable[[str], None]], ToolContext]:
        row = session.ledger.row
        home = self._machine.home
        out_dir, ledger = os.fspath(home / "out" / row.id), os.fspath(home / "run" / "children")
        skill_dirs = tuple(paths.skill_dirs())
        check_edit = self.edit_checks.of(session, is_trusted=paths.trusted)
        delegate, engine = self.offers.delegate_of(session), partial(self.offers.engine_of, session)
        wake = self.offers.wake_of(session)

        def context(call_id: str, progress: Callable[[str], None]) -> ToolContext:
            env, watch, editors = session.environment.variables, session.watch, session.editors.terminals
            traceparent = watch.traceparent(call_id) if watch.makes_traces else ""
            return ToolContext(
                session=row.id,
                call_id=call_id,
                cwd=row.cwd,
                env={**env, TRACEPARENT: traceparent} if traceparent else env,
                traceparent=traceparent,
                out_dir=out_dir,
                progress=progress,
                skill_dirs=skill_dirs,
                ledger=ledger,
                home=os.fspath(home),
                editor=session.editors.files if session.editors.files.offers else None,
                terminals=editors.usable(session.ledger.row, self._config.value, self._machine)
                if editors.offers
                else None,
                delegate=delegate,
                wake=wake,
                search_engine=engine,
                check_edit=check_edit,
                plan=partial(session.plan.update, call_id),
                jobs=session.jobs,
            )

        return context


async def _files(paths: ContextPaths) -> WorkspaceFiles:
    """Return the surroundings and the skills; without them when the disk does not answer."""
    try:
        async with asyncio.timeout(READ_S):
            return await asyncio.to_thread(read_files, paths)
    except TimeoutError:
        note = f"the instructions around {paths.cwd} could not be read within {READ_S:g} s and are left out"
        return WorkspaceFiles(WorkspaceContext(None, (), (note,)), [], b"", [])


def _known_trust(session: Session) -> bool | None:
    """Whether the workspace of a session without extensions is trusted.

    None: that has to be looked at, or there are extensions, or they are still being looked for.
    """
    extensions = session.extensions
    if extensions is None or extensions.resolution.extensions or session.environment.trusts_workspace:
        return None
    found = None
    for layer in extensions.resolution.layers:
        if not layer.started.is_set():
            return None
        if layer.is_watched and layer.trusting is not None:
            found = layer.trusting.is_granted
    return found


def _toolbox(
    extensions: Extensions | None,
    settings: records.Settings,
    own: Toolbox,
    *,
    of_program: Sequence[Tool],
    offered: Callable[[Toolbox], Toolbox],
) -> Toolbox:
    """Return `own`, unless the session has extensions at the moment."""
    if extensions is None or not extensions.resolution.extensions:
        return own
    return offered(joined(extensions.toolbox(settings), of_program))


def _hooks(extensions: Extensions | None, *, streams: bool) -> Hooks | None:
    """Return None if the session has no extensions at the moment: then it has no guards."""
    if extensions is None or not extensions.resolution.extensions:
        return None
    return extensions.hooks(streams=streams)
