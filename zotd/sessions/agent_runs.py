"""Runs of sessions whose turns another agent runs: the agent as their model, and its questions as approvals."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial

from msgspec.structs import replace

from zotd.adapters.agent import OtherAgent
from zotd.adapters.catalog import Adapter, known_adapters, new_adapter
from zotd.adapters.connection import AdapterConnection, AdapterListener
from zotd.adapters.model import AgentModel, AgentTools
from zotd.adapters.turn import DrivenTurn
from zotd.clock import rfc3339
from zotd.config.current import CurrentConfig
from zotd.contributions.toolbox import Toolbox
from zotd.core import records
from zotd.core.permissions import Policy
from zotd.core.retry import Failure, ModelError, RetryPolicy
from zotd.exthost.log import ExtensionLog
from zotd.ledger.ledger import Shown
from zotd.permissions.authorization import Authorization
from zotd.process import start_service
from zotd.runs.context import RunContext
from zotd.runs.model_ladder import OnlyModel, OpenedModel
from zotd.sessions.agent_questions import chosen, may
from zotd.sessions.agent_settings import PROVIDER
from zotd.sessions.authorization_site import authorization_context
from zotd.sessions.machine import Machine
from zotd.sessions.session import Session
from zotd.wire import events
from zotd.wire.acp import ContentBlock, ImageBlock, TextBlock
from zotd.wire.acp_reports import PermissionRequest
from zotd.wire.api import AgentOption, AgentOptionList, Completion
from zotd.wire.content import Image, Text
from zotd.wire.errors import Code, CommandError
from zotd.wire.plan import PlanStep

AT_ONCE = RetryPolicy(patience_s=0)
"""A prompt is sent once: what an agent did before it failed is not known."""

CHECKPOINT = "agent"
"""The name under which the files are recorded that a turn may change."""

KNOWN_VALUES = 40
"""Most values of an option that an error names."""

Spawn = Callable[[str, Coroutine[object, object, None]], None]


class SessionHome:
    """`zotd.adapters.agent.AgentHome` of a session."""

    def __init__(self, session: Session) -> None:
        self.cwd = session.ledger.row.cwd
        self._session = session
        self._authorization: Authorization | None = None
        """None: there was no run yet, so there is nothing to allow."""

    def begin_run(self, authorization: Authorization) -> None:
        """Decide by this authorization from now on."""
        self._authorization = authorization

    @property
    def remembered(self) -> str | None:
        """The agent's session on record."""
        found = self._session.ledger.transcript.agent_session
        return None if found is None else found.id

    @property
    def has_history(self) -> bool:
        """Whether the model of a run of ours would see more than this prompt."""
        return len(self._session.ledger.transcript.messages) > 1

    @property
    def copied_from(self) -> str:
        """The session of the agent's that this one is a copy of, until there was a turn in it."""
        found = self._session.ledger.transcript.agent_session
        return "" if found is None else found.copied_from

    async def remember(self, agent_session: str, *, copied_from: str = "") -> None:
        """Put it on record, safe on disk: after a crash the next process takes it up."""
        row = records.AgentSession(time=rfc3339(), id=agent_session, copied_from=copied_from)
        await self._session.ledger.write([Shown(row)], durable=True)

    async def planned(self, steps: Sequence[PlanStep]) -> None:
        """Show it as the session's plan."""
        await self._session.plan.told(steps)

    @property
    def chosen(self) -> Mapping[str, str]:
        """What people have chosen of the agent's options."""
        return self._session.ledger.row.settings.agent_choices

    async def told(self, note: str) -> None:
        """Show it on all clients."""
        self._session.ledger.live([events.Notice("warn", note, session=self._session.ledger.label)])

    async def changed(self, option: AgentOption) -> None:
        """Say so on all clients. A value that people have chosen is given up when the agent leaves it by itself."""
        name = next((value.name for value in option.values if value.id == option.current), option.current)
        notice = events.Notice("info", f"{option.name}: {name}", session=self._session.ledger.label)
        self._session.ledger.live([notice])
        if self.chosen.get(option.id, option.current) != option.current:
            await self.chose(option.id, option.current)

    async def chose(self, option: str, value: str) -> None:
        """Put it on record, with the settings of the session."""
        row = self._session.ledger.row
        settings = replace(row.settings, agent_choices={**self.chosen, option: value})
        changes = events.SessionChanged(self._session.state)
        await self._session.configure(settings, row.name, accepted=lambda: None, changes=changes)

    async def permit(self, turn: DrivenTurn, request: PermissionRequest) -> str | None:
        """Have rules, mode or a person decide."""
        call = turn.asked(request.tool_call)
        key = await turn.key_of(call)
        if not key or self._authorization is None:
            return None
        home = self._session.environment.variables.get("HOME")
        allowed = await may(self._authorization, key, request.tool_call, call, cwd=self.cwd, home=home)
        return None if turn.is_over else chosen(request.options, allowed=allowed)


class LoadedAgentRuns:
    """The agents of others, by session; satisfies `sessions.other_agents.AgentRuns`."""

    def __init__(self, machine: Machine, *, config: CurrentConfig, spawn: Spawn) -> None:
        self._machine = machine
        self._config = config
        self._spawn = spawn
        self._agents: dict[str, tuple[OtherAgent, SessionHome]] = {}

    def context(self, session: Session, first: records.Input | None, context: RunContext) -> RunContext:
        """Return what the next run of the session works with."""
        agent, home = self._agent_of(session)
        home.begin_run(context.authorization)
        prompt = agent.unsent if first is None else blocks_of(first, context.input_context)
        model = AgentModel(agent, prompt, before=partial(_record_files, session))
        tools = AgentTools(agent, partial(_item_of, session))
        everything = authorization_context(session, _everything, machine=self._machine, config=self._config)
        return replace(
            context,
            models=OnlyModel(OpenedModel(PROVIDER, session.ledger.row.settings.agent, model), AT_ONCE),
            toolbox=lambda: Toolbox(tools, (), {}),
            system="",
            system_digests={},
            told_date="",
            # The agent decides which calls it asks about, while they run; nobody is asked before.
            authorization=Authorization(everything, lambda: None),
            hooks=lambda: None,
            ended=agent.end_turn,
        )

    def commands(self, session: str) -> Sequence[Completion] | None:
        """Return the slash commands of the session's agent; None: it has not listed any yet."""
        found = self._agents.get(session)
        return None if found is None else found[0].commands

    @asynccontextmanager
    async def resting(self, session: Session) -> AsyncGenerator[None, None]:
        """Have the session's agent begin no turn for the block. Raises CommandError if it cannot copy its own session."""
        agent, _ = self._agent_of(session)
        with _in_a_sentence():
            async with agent.resting():
                yield

    async def copy(self, session: Session) -> None:
        """Have the agent of a fork copy what it is to copy. Raises CommandError; one sentence says why there is no copy."""
        agent, _ = self._agent_of(session)
        with _in_a_sentence("; nothing was forked"):
            await agent.copy()

    async def options(self, session: Session) -> AgentOptionList:
        """Return what people can choose of the session's agent, which is started if it does not run. Raises CommandError."""
        agent, _ = self._agent_of(session)
        with _in_a_sentence():
            return AgentOptionList(agent.title, list(await agent.options()))

    async def choose(self, session: Session, option: str, value: str) -> AgentOptionList:
        """Have the agent take a value for one of its options, by id or name, and remember it; returns all options.

        Raises CommandError: there is no such option or value, or the agent does not take it.
        """
        agent, _ = self._agent_of(session)
        with _in_a_sentence():
            known = {one.id: one for one in await agent.options()}
            if option not in known:
                there = f"there are {', '.join(known)}" if known else "it has none"
                raise CommandError(Code.NOT_FOUND, f'{agent.title} has no option "{option[:80]}"; {there}')
            values = known[option].values
            meant = [one.id for one in values if one.id == value] or [
                one.id for one in values if value.casefold() in {one.id.casefold(), one.name.casefold()}
            ]
            if not meant:
                there = ", ".join(one.id for one in values[:KNOWN_VALUES]) + (
                    ", …" if len(values) > KNOWN_VALUES else ""
                )
                raise CommandError(
                    Code.NOT_FOUND, f'{agent.title} has no {known[option].name} "{value[:80]}"; there are {there}'
                )
            await agent.choose(option, meant[0])
        return await self.options(session)

    def forget(self, session: str) -> None:
        """End the agent of a session that leaves memory."""
        agent, _ = self._agents.pop(session, (None, None))
        if agent is not None:
            self._spawn(f"end of {agent.title}", agent.stop())

    async def stop(self) -> None:
        """End all agents."""
        agents, self._agents = self._agents, {}
        async with asyncio.TaskGroup() as tasks:
            for agent, _ in agents.values():
                tasks.create_task(agent.stop(), name=f"end of {agent.title}")

    def _agent_of(self, session: Session) -> tuple[OtherAgent, SessionHome]:
        found = self._agents.get(session.id)
        if found is None:
            home = SessionHome(session)
            agent = OtherAgent(
                partial(self._adapter, session), home, connect=partial(self._connect, session), spawn=self._spawn
            )
            found = self._agents[session.id] = agent, home
        return found

    def _adapter(self, session: Session) -> Adapter:
        name = session.ledger.row.settings.agent
        # A configuration may have lost it since the session began.
        return known_adapters(self._config.value.adapters).get(name) or new_adapter(name)

    def _connect(self, session: Session, listener: AdapterListener) -> AdapterConnection:
        adapter = self._adapter(session)
        env = {**session.environment.variables, **_keys(session, adapter)}
        program = adapter.found(env.get("PATH"))
        if program is None:
            raise FileNotFoundError(adapter.command[0])
        reaper = self._machine.reaper
        claim = None if reaper is None else reaper.claim(f"adapter {adapter.name}", [session.id])
        argv = (program, *adapter.command[1:])
        return AdapterConnection(
            adapter.title,
            lambda service: start_service(argv, cwd=session.ledger.row.cwd, env=env, listener=service, claim=claim),
            ExtensionLog(self._machine.home / "logs" / f"ext-adapter-{adapter.name}.log"),
            listener,
        )


@contextmanager
def _in_a_sentence(so: str = "") -> Iterator[None]:
    """Have the failure of an agent be one of the command that was about it; `so`: what follows."""
    try:
        yield
    except ModelError as error:
        code = Code.UNSUPPORTED if error.failure is Failure.REFUSED else Code.CONFLICT
        raise CommandError(code, error.sentence + so) from error


def blocks_of(first: records.Input, beside: str) -> list[ContentBlock]:
    """Return an input as an agent takes it; `beside`: what guards have it read as well."""
    blocks: list[ContentBlock] = []
    for block in first.content:
        if isinstance(block, Text):
            blocks.append(TextBlock(block.text))
        elif isinstance(block, Image):
            blocks.append(ImageBlock(block.data, block.mime_type))
    return [*blocks, TextBlock(beside)] if beside else blocks


def _keys(session: Session, adapter: Adapter) -> dict[str, str]:
    keys = session.environment.keys
    return {name: keys[name] for name in adapter.keys if name in keys}


def _item_of(session: Session, key: str) -> str:
    return next((call.item for call in session.ledger.transcript.open_calls if call.id == key), "")


async def _record_files(session: Session) -> None:
    """Record the files before the agent may change them: it says what it does when it does it."""
    await session.checkpoints.before_step(session.ledger.transcript.run or "", session.ledger.row.seq, [CHECKPOINT])


def _everything() -> Policy:
    return Policy("yolo")
