"""The extensions of one place, and the sessions that use them: between an `exthost.Host` and `view.Extensions`."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from msgspec import Struct

from zotd.contributions.trust import WorkspaceTrust
from zotd.contributions.view import Extensions
from zotd.core.life import ExtensionState
from zotd.core.ports import ToolOutcome
from zotd.exthost.discovery import Discovered
from zotd.exthost.host import ExtensionTimeouts, Host, HostListener, ReloadReport, Wish
from zotd.exthost.manifest import Manifest
from zotd.exthost.requests import ToolRequest
from zotd.exthost.surroundings import Surroundings
from zotd.wire import events, ext

log = logging.getLogger(__name__)

LOOK_S = 5.0
"""Longest wait for a look at a directory: local files take milliseconds, a dead network mount for ever."""

Tell = Callable[[events.Event], None]

MAX_FAULTS = 100
"""Most Python modules that failed to load in a report of `zotctl ext doctor`."""

FAULT_CHARS = 4_000
"""Longest path of a module in a report, and longest error."""


class HostConfig(Struct, frozen=True):
    """What the hosts of this process have in common."""

    tell: Tell
    """Gets events of topics."""
    call_tool: Callable[[ToolRequest], None]
    """Runs a tool for an extension, and answers."""
    limits: ExtensionTimeouts
    reserved_commands: Collection[str] = ()
    """Slash commands that no extension can have."""


class ExtensionScope:
    """A host and its sessions; what an extension wants goes to those. Satisfies `exthost.host.HostListener`."""

    def __init__(
        self,
        host_config: HostConfig,
        surroundings: Surroundings,
        discover: Callable[[], Discovered],
        *,
        trusting: WorkspaceTrust | None = None,
        channels: HostListener | None = None,
    ) -> None:
        """`discover` reads the manifests, in a thread. `trusting`: of a workspace with code of its own.

        `channels`: hears the same, about messaging.
        """
        self.cwd = surroundings.cwd
        self.views: dict[str, Extensions] = {}
        """The extensions as each session sees them, by the session's id."""
        self.started = asyncio.Event()
        """Set when it has looked for its extensions."""
        self.trusting = trusting
        self.is_watched = False
        """`recheck` is called whenever the workspace's code changes; else it is called before each run."""
        self.is_of_session = surroundings.is_explicit
        """Only one session has these extensions."""
        self.faults: dict[str, str] = {}
        """Python modules that failed to load, by file."""
        self._looks = 1
        """How many times it is looking for its extensions; it begins with one."""
        # A change was reported during a look, which may have read the code before or after it.
        self._has_changed = False
        # What was asked last. Another look may have updated `trusting.question` without asking.
        self._asked: events.TrustRequired | None = None
        self._tell = host_config.tell
        self._call_tool = host_config.call_tool
        self._channels = channels
        self.host = Host(
            discover=discover,
            surroundings=replace(surroundings, sessions=self.views.keys()),
            listener=self,
            reserved_commands=host_config.reserved_commands,
            limits=host_config.limits,
        )

    # --- life -------------------------------------------------------------------------------------------------

    async def start(self, after: asyncio.Event | None = None, *, is_watched: bool = False) -> None:
        """Start the extensions, and wait for none; `after` a process of an earlier daemon has given up its port.

        `is_watched`: see the attribute.
        """
        self.is_watched = is_watched
        if after is not None:
            await after.wait()
        await self._look(self.host.start())

    def look_again(self) -> Coroutine[object, object, None]:
        """Read all manifests again, because other ones may be started; what is returned does it.

        Runs that begin from now on, and not only when it is awaited, wait for it.
        """
        self._looks += 1
        self.started.clear()
        return self._look(self.host.catch_up())

    async def catch_up(self, concerns: Callable[[Manifest], bool]) -> None:
        """Start, reload or stop those of the extensions that `concerns` selects, as their files demand now."""
        await self.started.wait()
        await self.host.catch_up(concerns)

    async def recheck(self) -> None:
        """Ask about the workspace's code again if it has changed. Starts nothing that was not trusted."""
        trusting = self.trusting
        if trusting is None:
            return
        if not self.started.is_set():
            self._has_changed = True
            return
        was_trusted, before = trusting.is_trusted, trusting.question
        await asyncio.to_thread(trusting.look)
        if trusting.question != before or trusting.is_trusted != was_trusted:
            self.contributions_changed()
        if trusting.is_trusted and not was_trusted:
            await self.look_again()
        elif trusting.question is None:
            self._asked = None
        elif trusting.question != self._asked:
            self._ask()
            for view in list(self.views.values()):
                view.ui_state.note("trust", "warn", trusting.sentence or "")

    async def reload(self, name: str | None, into: ReloadReport) -> None:
        """Restart the extension with this name, or read all manifests again; adds to the report."""
        if not self.started.is_set():
            into.add(ReloadReport(errors=[f"the extensions of {self.cwd} are still being looked for; try again"]))
        elif name is not None:
            error = await self.host.reload(name)
            failed = [] if error is None else [error]
            into.add(ReloadReport(loaded=[name], ready=[] if failed else [name], errors=failed))
        else:
            into.add(await self.host.reload_all())
            self.contributions_changed()  # manifests may have gone wrong, which sessions tell their people
            self._ask()

    async def stop(self) -> None:
        """End every process, within 3.3 s."""
        await self.host.stop()

    def join(self, view: Extensions) -> None:
        """A session uses these extensions from now on."""
        self.views[view.about.session] = view

    # --- exthost.host.HostListener --------------------------------------------------------------------------------

    def wish(self, extension: str, session: str | None, wish: Wish) -> str | None:
        """Pass a wish to its session, or to all; returns why none has taken it, or None."""
        refusals = [view.wish(extension, wish) for view in self._users(extension, session)]
        if session is not None and not refusals:
            return f"the session {session[:80]} is not open, or does not use it"
        return refusals[0] if refusals and None not in refusals else None

    def activate(self, session: str, tools: Sequence[str]) -> None:
        """Show deferred tools to a session's model."""
        if session in self.views:
            self.views[session].activate(tools)

    def state_changed(self, extension: str, state: ExtensionState, reason: str) -> None:
        """Tell the sessions and the subscribers of the topic."""
        for view in self._users(extension):
            view.state_changed(extension, state, reason)
        self._tell(events.ExtState(extension, self.cwd, state, reason or None))
        if self._channels is not None:
            self._channels.state_changed(extension, state, reason)

    def contributions_changed(self) -> None:
        """Have every session look anew."""
        for view in list(self.views.values()):
            view.changed()

    def complained(self, extension: str, sentence: str) -> None:
        """Record a complaint for the extension's log and the doctor; users cannot act on it."""
        log.info("extension %s: %s", extension, sentence)

    def call_tool(self, request: ToolRequest) -> None:
        """Run a tool in the session that it is about."""
        if self._users(request.extension, request.session):
            self._call_tool(request)
        else:
            sentence = f"the session {request.session[:80]} is not open, or does not use this extension"
            request.answer(ToolOutcome.error(sentence))

    def other(self, extension: str, frame: ext.FromExtension) -> None:
        """A module that failed to load, or loads again; channels hear the rest."""
        if self._channels is not None:
            self._channels.other(extension, frame)
        if not isinstance(frame, ext.ModuleError):
            return
        file, error = frame.file[:FAULT_CHARS], frame.error[:FAULT_CHARS]
        if not error:
            self.faults.pop(file, None)
        elif file in self.faults or len(self.faults) < MAX_FAULTS:
            self.faults[file] = error
        words = f"{file}: {error}" if error else f"{file} is mended"
        for view in self._users(extension):
            view.ui_state.note(extension, "warn" if error else "success", words)

    # --- inside -----------------------------------------------------------------------------------------------

    def _users(self, extension: str, session: str | None = None) -> list[Extensions]:
        """Return the views with this extension, of all sessions or one; a session may have another of the same name."""
        views = [view for key, view in self.views.items() if session in {None, key}]
        return [view for view in views if view.resolution.has(extension, self.host)]

    async def _look(self, work: Awaitable[object]) -> None:
        try:
            await work
        finally:
            self._looks -= 1
            if not self._looks:
                self.started.set()
            self.contributions_changed()
        self._ask()
        if self._has_changed and not self._looks:
            self._has_changed = False
            await self.recheck()

    def _ask(self) -> None:
        self._asked = None if self.trusting is None else self.trusting.question
        if self._asked is not None:
            self._tell(self._asked)


async def recheck_briefly(layer: ExtensionScope) -> bool:
    """Check a workspace's code for changes; return False if that took longer than `LOOK_S`, and was given up."""
    try:
        async with asyncio.timeout(LOOK_S):
            await layer.recheck()
    except TimeoutError:
        return False
    return True


async def wait_discovered(layers: Iterable[ExtensionScope]) -> None:
    """Wait at most `LOOK_S` until these have discovered their extensions; one that hangs does not delay the others."""
    with suppress(TimeoutError):
        async with asyncio.timeout(LOOK_S):
            for layer in layers:
                await layer.started.wait()
