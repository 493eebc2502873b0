"""An agent inside another program: one session, without a daemon and without a journal. `zot` is the interface to it.

    async with Runtime.open({"provider": "anthropic"}) as runtime:
        async for event in runtime.prompt("fix the failing test"):
            ...

Several runtimes share nothing, so open one per project.
"""

import asyncio
import difflib
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Self

import msgspec

from zotd import config, paths
from zotd.config import Config, LoadedConfig, SettingSource
from zotd.contributions.guards import CallGuard
from zotd.core.ports import Tool
from zotd.embed.assembly import Instruments, assemble
from zotd.embed.attending import ApprovalEvent, ApprovalInbox
from zotd.embed.earlier_messages import continue_after
from zotd.sessions.creation import create_session
from zotd.sessions.manager import Manager, Spawn
from zotd.sessions.session import Session
from zotd.tasks import contained
from zotd.wire import events
from zotd.wire.api import Approve, ModelInfo, PromptImage, Secrets, SessionCreate, Started
from zotd.wire.base import convert
from zotd.wire.content import Message, Tokens
from zotd.wire.errors import Code, CommandError


class BusyError(Exception):
    """The runtime is busy with a prompt or a compaction; wait for its `Done`, or abort it."""


class Runtime:
    """One agent session. Use its methods on the event loop that opened it."""

    def __init__(self, manager: Manager, session: Session, spawn: Spawn) -> None:
        """Use `Runtime.open`."""
        self.manager = manager
        self.session = session
        self.spawn = spawn
        """Starts a named task that is cancelled at the latest when the runtime is closed."""
        self._busy = False

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        options: Mapping[str, object] | None = None,
        *,
        env: Mapping[str, str] | None = None,
        tools: Sequence[Tool] = (),
        messages: Sequence[Message] = (),
        guard: CallGuard | None = None,
    ) -> AsyncIterator[Self]:
        """Open a session for the duration of the block; a run that is active at its end is aborted.

        Args:
            options: the fields of `wire.api.SessionCreate` (`cwd`, `provider`, `model`, `base_url`, `tools`,
                `no_tools`, `mode`, `system_prompt`, `append_system_prompt`, `max_steps`, `budget_usd`, `budget_tokens`,
                `reasoning`, `fallback`), and `api_key`. `cwd` defaults to the current directory.
            env: environment of tools and a source of API keys; default: that of this process.
            tools: further tools, which run in this process; `FunctionTool` makes one of a function.
            messages: what was said before, as `Runtime.messages` has it; the session continues there.
            guard: asked about every tool call, before the guards of extensions.

        Raises:
            CommandError: an option is wrong, e.g. an unknown model, a missing key or directory.
            ConfigError: `$ZOT_HOME/config.toml` is invalid.
        """
        variables = dict(os.environ if env is None else env)
        home = Path(paths.zot_home(variables))
        loaded = config.load(home / "config.toml", variables)
        async with _owned_tasks() as spawn:
            parts = assemble(
                home=home,
                env=variables,
                config=_config(loaded),
                journal=None,
                spawn=spawn,
                addressed=False,
                instruments=Instruments(tools=tools, guard=guard),
            )
            try:
                session = await create_session(parts.manager, _create(options or {}))
                _check_model(parts.manager, session)
                await continue_after(session.ledger, messages)
                yield cls(parts.manager, session, spawn)
            finally:
                await parts.stop()
                await parts.close()

    # --- requests -----------------------------------------------------------------------------------------------------

    def prompt(self, text: str, images: Sequence[PromptImage] = ()) -> AsyncGenerator[events.Event, None]:
        """Send a prompt and yield its events; the last one is `Done`. Leaving the loop early aborts the run.

        Raises:
            BusyError: another prompt or compaction is in progress.
            CommandError: the prompt was refused.
        """

        def send(accepted: Callable[[Started], None]) -> Coroutine[object, object, None]:
            return self.session.prompt(text, images, sender="", when_busy="reject", accepted=accepted)

        return self._follow(send)

    def compact(self, instructions: str = "") -> AsyncGenerator[events.Event, None]:
        """Compact the transcript and yield the events: `CompactDone` or `Error`, then `Done`. Raises like `prompt`."""
        return self._follow(lambda accepted: self.session.compact(instructions, accepted=accepted))

    def abort(self) -> None:
        """Abort the current run; its events still end with `Done`."""
        self.session.abort()

    async def set_model(self, model: str) -> None:
        """Use another model of the same provider from the next prompt on.

        Raises:
            CommandError: the provider has no such model, or a prompt is in progress.
        """
        old = self.session.ledger.row.settings
        if not self.manager.models.known(old.provider, model) and old.base_url is None:
            raise CommandError(Code.NOT_FOUND, f'unknown model "{model}" (provider {old.provider})')
        settings = msgspec.structs.replace(old, model=model)
        changes = events.SessionChanged(self.session.state, model=model)
        await self.session.configure(settings, self.session.ledger.row.name, accepted=_nothing, changes=changes)

    @contextmanager
    def attended(self) -> Iterator[AsyncIterator[ApprovalEvent]]:
        """Decide about tool calls in place of a person, for the block: yields what is asked, and what is over.

        Without it, a call that needs an approval is denied.
        """
        inbox = ApprovalInbox()
        self.session.ledger.subscribe(inbox)
        self.session.approvals.followers.add(inbox)
        try:
            yield inbox
        finally:
            self.session.approvals.followers.discard(inbox)
            self.session.ledger.unsubscribe(inbox)

    async def decide(self, decision: Approve, by: str) -> None:
        """Decide about a call that was asked about; `by` is told to clients.

        Raises:
            CommandError: the call is not pending any more, or has other arguments now.
        """
        await self.session.approvals.decide(decision, by, _nothing)

    # --- state --------------------------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """`idle` or `running`."""
        return self.session.state

    @property
    def messages(self) -> list[Message]:
        """The transcript as the model sees it, with image data."""
        return list(self.session.ledger.transcript.messages)

    @property
    def usage(self) -> Tokens:
        """Tokens and cost so far."""
        return self.session.ledger.row.usage

    @property
    def models(self) -> list[ModelInfo]:
        """The models of the provider."""
        return self.manager.models.listed(self.session.ledger.row.settings.provider, self.session.environment)

    # --- inside -------------------------------------------------------------------------------------------------------

    async def _follow(
        self, send: Callable[[Callable[[Started], None]], Coroutine[object, object, None]]
    ) -> AsyncGenerator[events.Event, None]:
        with self._alone():
            inbox = _Inbox()
            self.session.ledger.subscribe(inbox)
            try:
                await send(_told)
                event: events.Event | None = None
                while not isinstance(event, events.Done):
                    event = await inbox.events.get()
                    yield event
            finally:
                self.session.ledger.unsubscribe(inbox)
                self.session.abort()
                await self.session.stopped()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if self._busy:
            raise BusyError("this runtime is busy; wait for Done, abort, or open another one")
        self._busy = True
        try:
            yield
        finally:
            self._busy = False


class _Inbox:
    """Queues events for `prompt`. Unbounded, because the caller wants each of them."""

    def __init__(self) -> None:
        self.events: asyncio.Queue[events.Event] = asyncio.Queue()

    def committed(self, shown: Sequence[events.Event], data: bytes, last_seq: int) -> None:
        """Queue the events of a commit."""
        del data, last_seq
        for event in shown:
            self.events.put_nowait(event)

    def early(self, shown: events.Event, data: bytes, seq: int) -> bool:
        """Queue the event."""
        self.committed([shown], data, seq)
        return True

    def live(self, shown: Sequence[events.Event], data: bytes) -> None:
        """Queue live events."""
        del data
        for event in shown:
            self.events.put_nowait(event)


@asynccontextmanager
async def _owned_tasks() -> AsyncIterator[Callable[[str, Coroutine[object, object, None]], None]]:
    """Yield a function that starts named tasks; tasks that still run at the end of the block are cancelled."""
    running: set[asyncio.Task[None]] = set()
    failure: Exception | None = None
    async with asyncio.TaskGroup() as group:

        def spawn(name: str, work: Coroutine[object, object, None]) -> None:
            task = contained(group, name, work)
            running.add(task)
            task.add_done_callback(running.discard)

        try:
            yield spawn
        except Exception as error:  # noqa: BLE001  (re-raised below: the task group would wrap it in an ExceptionGroup)
            failure = error
        finally:
            for task in running:
                task.cancel()
    if failure is not None:
        raise failure


def _check_model(manager: Manager, session: Session) -> None:
    """Raise CommandError for a model that its vendor does not have; a server of the user may have any."""
    settings, models = session.ledger.row.settings, manager.models
    if settings.agent:
        return
    if settings.base_url is not None or models.known(settings.provider, settings.model):
        return
    listed = models.listed(settings.provider, session.environment)
    names = [info.id for info in listed if info.id != settings.model]  # the models used last are listed, too
    near = difflib.get_close_matches(settings.model, names, 1)
    hint = f'; did you mean "{near[0]}"?' if near else "; `zot --list-models` lists all"
    raise CommandError(Code.NOT_FOUND, f'unknown model "{settings.model}" (provider {settings.provider}){hint}')


def _config(loaded: LoadedConfig) -> Config:
    """Return the configuration; unless the user has chosen a mode, it is `yolo`.

    No person is at hand who could decide, and programs of the original `zot rpc` rely on it.
    """
    if loaded.sources["approval.mode"] is not SettingSource.DEFAULT:
        return loaded.config
    approval = msgspec.structs.replace(loaded.config.approval, mode="yolo")
    return msgspec.structs.replace(loaded.config, approval=approval)


def _create(options: Mapping[str, object]) -> SessionCreate:
    fields = {"cwd": str(Path.cwd()), **{name: value for name, value in options.items() if value is not None}}
    key = fields.pop("api_key", None)
    unknown = fields.keys() - set(SessionCreate.__struct_fields__)
    if unknown:
        raise CommandError(Code.BAD_REQUEST, f'there is no option "{min(unknown)}"; see wire.api.SessionCreate')
    params = convert(fields, SessionCreate)
    cwd = str(Path(params.cwd).resolve())
    return msgspec.structs.replace(params, cwd=cwd, secrets=Secrets(str(key)) if key else None)


def _told(_: Started) -> None:
    """Ignore the response: the events tell what happens."""


def _nothing() -> None:
    """Ignore the end: the events tell what happens."""
