"""All extensions of one workspace: started together, stopped together, and seen as one by its sessions.

    discover ──> Extension, Extension, ...  (in load order)
                      └──> tools, commands, events, guards      for sessions
                      └──> Listener: notes, panels, prompts     from extensions

A bad extension never delays or aborts another: nothing here awaits one of them while others wait, except `ready`,
`stop` and the reloads, whose waits are bounded by `core.supervision`.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from zotd.core.life import State
from zotd.exthost import guards
from zotd.exthost.calls import CallError
from zotd.exthost.contributions import Contributions
from zotd.exthost.discovery import Discovered
from zotd.exthost.extension import Extension, Surroundings
from zotd.exthost.guards import Verdict
from zotd.exthost.manifest import FILE, Manifest, ManifestError, read_manifest
from zotd.exthost.peer import Peer
from zotd.exthost.tools import ExtensionTool
from zotd.wire import ext

log = logging.getLogger(__name__)

READY_S = 3.0
"""How long a session that starts waits for extensions that are still starting."""

ACTIONS = ("", "prompt", "insert", "display", "noop", "open_panel", "tool_prompt")
"""What a command may want done; empty means nothing."""

Wish = (
    ext.Notify
    | ext.ClearNotes
    | ext.OpenPanel
    | ext.PanelRender
    | ext.PanelClose
    | ext.SetStatus
    | ext.Submit
    | ext.SubmitSlash
)
"""What an extension wants of a session."""


class Listener(Protocol):
    """Gets what extensions want, on the event loop; must not block."""

    def wish(self, extension: str, session: str | None, wish: Wish) -> None:
        """Something for a session; None: for all of the workspace. `submit` and `open_panel` always have one."""
        ...

    def activate(self, session: str, tools: Sequence[str]) -> None:
        """Deferred tools that the model should see in this session from now on."""
        ...

    def state_changed(self, extension: str, state: State, reason: str) -> None:
        """An extension's state; `reason` goes on from its name. When it leaves `ready`, its panels are nobody's."""
        ...

    def contributions_changed(self) -> None:
        """Tools or commands came or went; they hold from the next model call on."""
        ...

    def other(self, extension: str, frame: ext.FromExtension) -> None:
        """A frame that is not the host's business: channels, modules, calls of tools."""
        ...


@dataclass(frozen=True, slots=True)
class Limits:
    """How long extensions are waited for, in seconds."""

    tool_s: float = 60.0
    command_s: float = 30.0
    intercept_s: float = 5.0


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command of an extension."""

    name: str
    """As it is typed, without the slash; `extension:name` for one whose name another one has."""
    description: str
    extension: str


@dataclass(frozen=True, slots=True)
class Status:
    """An extension, as `ext list` shows it."""

    manifest: Manifest
    state: State
    reason: str
    pid: int | None
    tools: tuple[str, ...]
    commands: tuple[str, ...]
    log: str
    is_responding: bool


@dataclass(slots=True)
class ReloadReport:
    """What a reload did, by name."""

    stopped: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    ready: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Sentences."""


class UnknownCommandError(Exception):
    """No extension has this command."""


class Host:
    """The extensions of one workspace."""

    def __init__(
        self,
        *,
        discover: Callable[[], Discovered],
        surroundings: Surroundings,
        listener: Listener,
        reserved_commands: Collection[str] = (),
        limits: Limits | None = None,
    ) -> None:
        """`discover` reads the manifests, in a thread, at the start and at each reload of all."""
        self.discovered = Discovered()
        self._discover = discover
        self._surroundings = surroundings
        self._listener = listener
        self._reserved_commands = reserved_commands
        self._limits = limits or Limits()
        self._extensions: dict[str, Extension] = {}
        self._contributions: Contributions | None = None
        self._tools: list[ExtensionTool] = []

    # --- life -------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start all extensions side by side, and wait for none."""
        self.discovered = await asyncio.to_thread(self._discover)
        for manifest in self.discovered.manifests:
            self._add(manifest).start()

    async def wait_ready(self, within_s: float = READY_S) -> list[str]:
        """Wait until no extension is starting; the names of those that still are when the time is over."""
        try:
            async with asyncio.timeout(within_s):
                for extension in list(self._extensions.values()):
                    await extension.until(lambda one=extension: one.state is not State.STARTING)  # type: ignore[misc]
        except TimeoutError:
            pass
        return [one.name for one in self._extensions.values() if one.state is State.STARTING]

    async def stop(self) -> None:
        """End all processes side by side, within 3.3 s; when cancelled, the ladders go on."""
        stopping = list(self._extensions.values())
        for extension in stopping:
            extension.begin_stop()
        for extension in stopping:
            await _stopped(extension)
        self._extensions.clear()
        self._forget()

    async def reload(self, name: str) -> str | None:
        """Let a new process of one extension take over; None, or a sentence about why nothing has changed."""
        extension = self._extensions.get(name)
        if extension is None:
            return f"there is no extension {name} here"
        try:
            manifest = await asyncio.to_thread(read_manifest, extension.manifest.directory)
        except ManifestError as error:
            return str(error)
        if manifest.name != name:
            return f"{manifest.directory / FILE} names itself {manifest.name} now; reload all extensions"
        return await extension.begin_reload(manifest)

    async def reload_all(self) -> ReloadReport:
        """Read all manifests again; start, reload and stop what they say, side by side."""
        found = await asyncio.to_thread(self._discover)
        self.discovered = found
        wanted = {manifest.name: manifest for manifest in found.manifests}
        report = ReloadReport(errors=list(found.errors))
        vanished = [one for one in self._extensions.values() if one.name not in wanted and not self._is_broken(one)]
        for extension in vanished:
            extension.begin_stop()
        reloads = {
            name: self._extensions[name].begin_reload(manifest) if name in self._extensions else None
            for name, manifest in wanted.items()
        }
        started = [self._add(wanted[name]) for name, reload in reloads.items() if reload is None]
        for extension in started:
            extension.start()
        for extension in vanished:
            await _stopped(extension)
            report.stopped.append(extension.name)
            del self._extensions[extension.name]
        for name, reload in reloads.items():
            error = None if reload is None else await reload
            report.errors += [] if error is None else [error]
            report.loaded.append(name)
        for extension in started:
            await extension.until(lambda one=extension: one.state is not State.STARTING)  # type: ignore[misc]
            if extension.state is not State.READY:
                report.errors.append(extension.condition)
        report.ready = [name for name in wanted if self._extensions[name].state is State.READY]
        self._order(list(wanted))
        return report

    # --- for sessions -----------------------------------------------------------------------------------------

    def tools(self) -> Sequence[ExtensionTool]:
        """The tools that can be called now, in load order; those with `exposure` `deferred` are shown when activated."""
        self._resolve()
        return self._tools

    def commands(self) -> list[Command]:
        """The slash commands that can be invoked now, in load order."""
        names = self._resolve().commands
        return [Command(claim.name, claim.value.description, claim.owner) for claim in names.winners.values()] + [
            Command(f"{claim.owner}:{claim.name}", claim.value.description, claim.owner)
            for claim in names.qualified.values()
            if names.winners.get(names.fold(claim.name)) is not claim
        ]

    async def invoke(
        self, name: str, args: str, *, session: str, client: str | None
    ) -> tuple[str, ext.CommandResponse]:
        """Run a slash command; its extension and what it wants done. A failure is a response with `error`.

        Raises:
            UnknownCommandError: nobody has this command.
        """
        claim = self._resolve().commands.find(name)
        if claim is None:
            raise UnknownCommandError(f"no extension has the command /{name}")
        extension = self._extensions[claim.owner]
        peer = await extension.available()
        if peer is None:
            return extension.name, ext.CommandResponse("", error=f"{extension.condition}; try /{name} again later")
        extension.last_session = session
        try:
            answer = await peer.call(
                ext.CommandResponse,
                lambda key: ext.CommandInvoked(key, claim.name, args.strip(), session, client),
                limit_s=self._limits.command_s,
                session=session,
            )
        except CallError as error:
            return extension.name, ext.CommandResponse("", error=f"/{name} failed: {extension.name} {error}")
        assert isinstance(answer, ext.CommandResponse)
        if not answer.error and answer.action not in ACTIONS:
            unknown = f'/{name} failed: {extension.name} wants the unknown action "{answer.action[:80]}"'
            return extension.name, ext.CommandResponse(answer.id, error=unknown)
        return extension.name, answer

    def emit(self, event: ext.Event) -> None:
        """Tell an event to those who subscribed to it; each gets all of its events in this order."""
        for extension in self._extensions.values():
            peer, offered = extension.serving, extension.offered
            if peer is not None and offered is not None and event.event in offered.events:
                self._send(extension, peer, event)

    def send(self, name: str, frame: ext.ToExtension) -> bool:
        """Send a frame, such as a key for a panel; False when the extension is not there to get it."""
        extension = self._extensions.get(name)
        if extension is None or extension.serving is None:
            return False
        return self._send(extension, extension.serving, frame)

    async def guard_tool_call(
        self, session: str, tool_id: str, tool: str, args: Mapping[str, object]
    ) -> Verdict[dict[str, object]]:
        """May this tool run, and with which arguments? Approval by a person comes afterwards."""
        return await self._ask(guards.before_tool_call(session, tool_id, tool), dict(args))

    async def guard_turn_start(self, session: str, step: int) -> Verdict[int]:
        """May this step call the model?"""
        return await self._ask(guards.before_turn(session), step)

    async def guard_assistant_message(self, session: str, text: str) -> Verdict[str]:
        """May the user see this text, and how? Blocked: it is hidden."""
        return await self._ask(guards.before_message(session), text)

    async def before_agent_start(self, session: str, system_prompt: str) -> Verdict[str]:
        """With which system prompt does the agent start?"""
        return await self._ask(guards.before_agent(session), system_prompt)

    def guards(self, event: str) -> list[str]:
        """Who would be asked about it; text deltas are held while somebody is in `assistant_message`."""
        return [one.name for one in self._extensions.values() if guards.concerns(one, event)]

    # --- for people -------------------------------------------------------------------------------------------

    def status(self) -> list[Status]:
        """All extensions that are not disabled, in load order."""
        return [_status(one) for one in self._extensions.values()]

    def doctor(self) -> list[tuple[str, str]]:
        """What is not as it should be: an extension's name (empty: none) and a sentence about it."""
        found = [("", error) for error in self.discovered.errors]
        found += [
            (one.manifest.name, f"{one.manifest.directory} is hidden by {one.by}") for one in self.discovered.shadowed
        ]
        found += [(one.name, f"{one.directory} is disabled") for one in self.discovered.disabled]
        found += self._resolve().conflicts()
        for extension in self._extensions.values():
            found += [(extension.name, sentence) for sentence in _complaints(extension)]
        return found

    # --- exthost.extension.Owner ------------------------------------------------------------------------------

    def offers_changed(self) -> None:
        """What is offered has to be looked up anew."""
        self._forget()
        self._listener.contributions_changed()

    def state_changed(self, extension: Extension) -> None:
        """An extension has another state."""
        self._listener.state_changed(extension.name, extension.state, extension.reason)

    def frame(self, extension: Extension, peer: Peer, frame: ext.FromExtension) -> None:
        """An extension wants something: find out for which session."""
        match frame:
            case ext.Submit() | ext.SubmitSlash() | ext.OpenPanel():
                session = frame.session_id or extension.last_session
                if session is None:
                    extension.log.say(f"a {frame.__struct_config__.tag} was dropped: it is about no session")
                    return
                self._listener.wish(extension.name, session, frame)
            case ext.Notify() | ext.ClearNotes() | ext.SetStatus() | ext.PanelRender() | ext.PanelClose():
                self._listener.wish(extension.name, frame.session_id or peer.calls.session, frame)
            case _:
                self._listener.other(extension.name, frame)

    # --- details ----------------------------------------------------------------------------------------------

    def _add(self, manifest: Manifest) -> Extension:
        extension = Extension(manifest, self._surroundings, self)
        self._extensions[manifest.name] = extension
        return extension

    def _order(self, names: Sequence[str]) -> None:
        """Make this the load order; what is not named stays behind."""
        rest = [name for name in self._extensions if name not in names]
        self._extensions = {name: self._extensions[name] for name in [*names, *rest]}
        self.offers_changed()

    def _is_broken(self, extension: Extension) -> bool:
        """Its manifest cannot be read any more, which is no reason to stop what works."""
        directory = extension.manifest.directory
        return (
            any(error.startswith(str(directory / FILE)) for error in self.discovered.errors)
            and (directory / FILE).exists()
        )

    def _forget(self) -> None:
        self._contributions = None

    def _resolve(self) -> Contributions:
        if self._contributions is None:
            offers = [(name, one.offered) for name, one in self._extensions.items() if one.offered is not None]
            found = self._contributions = Contributions(offers, self._reserved_commands)
            self._tools = [
                ExtensionTool(
                    self._extensions[claim.owner],
                    claim.value,
                    limit_s=self._limits.tool_s,
                    activate=self._listener.activate,
                )
                for claim in found.tools.winners.values()
            ]
        return self._contributions

    async def _ask(self, question: guards.Question[guards.T], value: guards.T) -> Verdict[guards.T]:
        return await guards.ask(list(self._extensions.values()), question, value, limit_s=self._limits.intercept_s)

    def _send(self, extension: Extension, peer: Peer, frame: ext.ToExtension) -> bool:
        try:
            peer.send(frame)
        except CallError as error:
            log.warning("a frame was dropped: %s %s", extension.name, error)
            return False
        return True


async def _stopped(extension: Extension) -> None:
    await extension.until(lambda: extension.state is State.STOPPED)


def _status(extension: Extension) -> Status:
    offered = extension.offered
    return Status(
        manifest=extension.manifest,
        state=extension.state,
        reason=extension.reason,
        pid=extension.serving.process.pid if extension.serving else None,
        tools=tuple(offered.tools) if offered else (),
        commands=tuple(offered.commands) if offered else (),
        log=str(extension.log.path),
        is_responding=guards.is_responding(extension),
    )


def _complaints(extension: Extension) -> list[str]:
    found = [extension.reason] if extension.reason else []
    found += [extension.warning] if extension.warning else []
    found += list(extension.offered.refused.values()) if extension.offered else []
    if not guards.is_responding(extension):
        found.append("is not responding when it is asked")
    peer = extension.serving
    if peer is not None:
        counts, dropped = peer.counts, peer.calls.dropped
        told = {
            "lines that are no JSON": counts.stray,
            "unknown frames": counts.unknown,
            "bad frames": counts.bad,
            "lines over 4 MiB": counts.too_long,
            "late answers": dropped.late,
            "answers to nothing": dropped.unknown,
        }
        found += [f"{number} {what} were dropped" for what, number in told.items() if number]
    return found
