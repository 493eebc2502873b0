"""All extensions of one workspace, which are started and stopped together.

    discover ──> Extension, Extension, ...  (in load order)
                      └──> tools, commands, events, guards      for sessions
                      └──> Listener: notes, panels, prompts     from extensions

A failing extension never delays or aborts another. Only `wait_ready`, `stop` and the reloads await single extensions, and
`core.supervision` limits how long that takes.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from typing import Protocol

from msgspec import Struct, field

from zotd.core.life import ExtensionState
from zotd.exthost import report
from zotd.exthost.bridge_host import BridgeHost
from zotd.exthost.discovery import Discovered
from zotd.exthost.extension import SupervisedExtension
from zotd.exthost.guards import Guards
from zotd.exthost.manifest import FILE, Manifest, ManifestError, read_manifest
from zotd.exthost.offers import Offers
from zotd.exthost.peer import ExtensionPeer
from zotd.exthost.requests import ToolRequest
from zotd.exthost.surroundings import Surroundings
from zotd.wire import ext

READY_S = 3.0
"""How long a session that starts waits for extensions that are still starting."""

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
"""Frames by which an extension asks something of a session."""


class HostListener(Protocol):
    """Receives requests and events of extensions, on the event loop. Must not block."""

    def wish(self, extension: str, session: str | None, wish: Wish) -> str | None:
        """Carry out a wish for a session, or for all sessions of the workspace if `session` is None.

        `submit` and `open_panel` always name a session. Return the reason if the wish was dropped, else None.
        """
        ...

    def activate(self, session: str, tools: Sequence[str]) -> None:
        """Show these deferred tools to the model of this session from now on."""
        ...

    def state_changed(self, extension: str, state: ExtensionState, reason: str) -> None:
        """Report an extension's state; `reason` continues its name. When it leaves `ready`, its panels are closed.

        `ready` with a reason means that a reload has failed and the old process continues.
        """
        ...

    def contributions_changed(self) -> None:
        """Tools or commands were added or removed; effective from the next model call on."""
        ...

    def complained(self, extension: str, sentence: str) -> None:
        """Report a fault to the extension's author, once for each kind."""
        ...

    def call_tool(self, request: ToolRequest) -> None:
        """Run a tool for an extension. The listener has to answer the request exactly once."""
        ...

    def other(self, extension: str, frame: ext.FromExtension) -> None:
        """Handle a frame about channels or modules."""
        ...


class ExtensionTimeouts(Struct, frozen=True):
    """Time limits of calls to extensions, in seconds."""

    tool_s: float = 60.0
    command_s: float = 30.0
    intercept_s: float = 5.0


class ReloadReport(Struct):
    """Result of a reload: the names of the extensions concerned."""

    stopped: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    ready: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Sentences about what failed."""

    def add(self, other: "ReloadReport") -> None:
        """Add the names and errors of another reload."""
        self.stopped += other.stopped
        self.loaded += other.loaded
        self.ready += other.ready
        self.errors += other.errors


class Host:
    """The extensions of one workspace."""

    def __init__(
        self,
        *,
        discover: Callable[[], Discovered],
        surroundings: Surroundings,
        listener: HostListener,
        reserved_commands: Collection[str] = (),
        limits: ExtensionTimeouts | None = None,
    ) -> None:
        """Create a host without processes. `discover` reads the manifests, in a thread, at the start and at each reload."""
        self.discovered = Discovered()
        limits = limits or ExtensionTimeouts()
        self.offers = Offers(
            self._all,
            reserved_commands=reserved_commands,
            tool_s=limits.tool_s,
            command_s=limits.command_s,
            activate=listener.activate,
        )
        self.guards = Guards(self._all, limits.intercept_s)
        self._discover = discover
        self._surroundings = surroundings
        self._bridges = BridgeHost(surroundings)
        self._listener = listener
        self._extensions: dict[str, SupervisedExtension] = {}
        self.extensions = self._extensions.values()
        """All extensions, in load order; it shows later changes. Copy it before an `await`."""
        self._following = asyncio.Lock()
        """Held while manifests are read and applied: one reload may have to start what another is still stopping."""
        self._is_stopped = False

    # --- life -------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start all extensions in parallel, without waiting for any."""
        async with self._following:
            self.discovered = await asyncio.to_thread(self._discover)
            # `stop` may have been called while the manifests were read.
            if self._is_stopped:
                return
            for manifest in self.discovered.manifests:
                if manifest.name not in self._extensions:  # `catch_up` may have come first
                    extension = self._extensions[manifest.name] = self._supervised(manifest)
                    extension.start()
            if self._surroundings.handover_store is not None:
                # Survivors of the last daemon that no manifest claims any more are ended now.
                self._surroundings.handover_store.settle(self._surroundings.place)

    async def wait_ready(self, within_s: float = READY_S) -> list[str]:
        """Wait until every extension's first start has succeeded or failed; return the names of those still starting.

        Only the first start counts, so an extension that keeps crashing does not delay every run.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                for extension in self._all():
                    await _tried(extension)
        return [one.name for one in self._all() if not one.was_tried]

    async def stop(self) -> None:
        """Stop all processes in parallel, within 3.3 s. If cancelled, they are still stopped."""
        self._is_stopped = True
        stopping = list(self._extensions.values())
        for extension in stopping:
            extension.begin_stop()
        for extension in stopping:
            await _stopped(extension)
        self._extensions.clear()
        self.offers.forget()
        self._bridges.close()
        await self._bridges.wait_ended()

    async def reload(self, name: str) -> str | None:
        """Replace the process of one extension; return None, or a sentence that says why the old one stays."""
        extension = self._extensions.get(name)
        if extension is None:
            return f"there is no extension {name} here"
        found = await asyncio.to_thread(self._discover)
        # A reload would start the changed code, which only a new grant may do.
        if found.keeps(extension.manifest):
            return f"{name} was not reloaded: the code of {self._surroundings.cwd} has changed since it was trusted"
        manifest = next((one for one in found.manifests if one.name == name), None)
        if manifest is None:
            return await asyncio.to_thread(_why_not, extension.manifest)
        # A stopping extension must not be revived by a reload that was requested earlier.
        if extension.state in {ExtensionState.STOPPING, ExtensionState.STOPPED}:
            return f"{name} was stopped"
        return await extension.begin_reload(manifest)

    async def catch_up(self, concerns: Callable[[Manifest], bool] = lambda _: True) -> ReloadReport:
        """Read all manifests again; start, reload or stop the extensions that `concerns` selects and that have changed."""
        return await self._follow(concerns, is_due=lambda extension, manifest: extension.manifest != manifest)

    async def reload_all(self) -> ReloadReport:
        """Read all manifests again; start, restart or stop all extensions accordingly, in parallel."""
        return await self._follow(lambda _: True, is_due=lambda _, __: True)

    # --- for sessions -----------------------------------------------------------------------------------------

    def send(self, name: str, frame: ext.ToExtension) -> bool:
        """Send a frame that expects no answer; return False if the extension does not serve."""
        extension = self._extensions.get(name)
        return extension is not None and extension.send(frame)

    # --- for people -------------------------------------------------------------------------------------------

    def status(self) -> list[report.ExtensionStatus]:
        """Describe all extensions that are not disabled, in load order."""
        return [report.status(one) for one in self._all()]

    def doctor(self) -> list[tuple[str, str]]:
        """Return the problems found: an extension's name (empty if unknown) and a sentence."""
        found = [*report.findings(self.discovered), *self.offers.conflicts()]
        return found + [(one.name, complaint) for one in self._all() for complaint in report.complaints(one)]

    # --- exthost.extension.ExtensionListener ------------------------------------------------------------------------------

    def offers_changed(self) -> None:
        """Drop cached names and notify the listener."""
        self.offers.forget()
        self._listener.contributions_changed()

    def state_changed(self, extension: SupervisedExtension) -> None:
        """Forward an extension's state and reason to the listener."""
        self._listener.state_changed(extension.name, extension.state, extension.reason)

    def complained(self, extension: SupervisedExtension, sentence: str) -> None:
        """Forward a fault to the listener."""
        self._listener.complained(extension.name, sentence)

    def frame(self, extension: SupervisedExtension, peer: ExtensionPeer, frame: ext.FromExtension) -> None:
        """Find the session that a frame is about, and forward it."""
        match frame:
            case ext.Submit() | ext.SubmitSlash() | ext.OpenPanel():
                # These have an effect of their own in a session, so they fall back to the latest session and never go
                # to all: one frame must not start two runs.
                self._wish(extension, peer, frame.session_id or extension.last_session, frame)
            case ext.Notify() | ext.ClearNotes() | ext.SetStatus() | ext.PanelRender() | ext.PanelClose():
                self._wish(extension, peer, frame.session_id or peer.calls.session, frame)
            case ext.CallTool():
                self._call_tool(extension, peer, frame)
            case ext.CallToolCancel():
                peer.requests.cancel(frame.id)
            case _:
                self._listener.other(extension.name, frame)

    # --- details ----------------------------------------------------------------------------------------------

    def _wish(self, extension: SupervisedExtension, peer: ExtensionPeer, session: str | None, wish: Wish) -> None:
        if session is None and isinstance(wish, ext.Submit | ext.SubmitSlash | ext.OpenPanel):
            refused: str | None = "it names no session"
        else:
            refused = self._listener.wish(extension.name, session, wish)
        if refused is not None:
            tag = wish.__struct_config__.tag
            peer.complain(f"wish {tag}", f"a {tag} was dropped: {refused}")

    def _call_tool(self, extension: SupervisedExtension, peer: ExtensionPeer, frame: ext.CallTool) -> None:
        # The request is still opened below, which answers it with an error.
        if not peer.can(ext.CALL_TOOL):
            peer.complain("call_tool", f"sent a call_tool without announcing {ext.CALL_TOOL} in its hello")
        request = peer.requests.open(extension.name, frame, extension.last_session, may=peer.can(ext.CALL_TOOL))
        if request is not None:
            self._listener.call_tool(request)

    def _all(self) -> list[SupervisedExtension]:
        return list(self._extensions.values())

    async def _follow(
        self, concerns: Callable[[Manifest], bool], *, is_due: Callable[[SupervisedExtension, Manifest], bool]
    ) -> ReloadReport:
        """Apply the manifests. Of the known extensions, only those that `is_due` selects are reloaded."""
        async with self._following:
            found = self.discovered = await asyncio.to_thread(self._discover)
            if self._is_stopped:
                return ReloadReport()
            return await self._carry_out(found, concerns, is_due)

    async def _carry_out(
        self,
        found: Discovered,
        concerns: Callable[[Manifest], bool],
        is_due: Callable[[SupervisedExtension, Manifest], bool],
    ) -> ReloadReport:
        # Everything is begun before anything is awaited, so that extensions stop and start in parallel.
        wanted = {manifest.name: manifest for manifest in found.manifests if concerns(manifest)}
        there = [one for one in self._all() if concerns(one.manifest)]
        kept = {one.name for one in there if found.keeps(one.manifest)}
        vanished = [one for one in there if one.name not in {*wanted, *kept} and not self._is_broken(one)]
        for extension in vanished:
            extension.begin_stop()
        known = {one.name: one for one in there}
        reloads = [
            self._begin(manifest)
            for name, manifest in wanted.items()
            if name not in known or (name not in kept and is_due(known[name], manifest))
        ]
        for extension in vanished:
            await _stopped(extension)
            self._extensions.pop(extension.name, None)
        # All reloads are already running; this only collects their results.
        errors = [await reload for reload in reloads]
        # Manifests may have been added or moved, and the load order decides who owns a name.
        self._order([manifest.name for manifest in found.manifests])
        return ReloadReport(
            stopped=[one.name for one in vanished],
            loaded=list(wanted),
            ready=[one.name for one in self._all() if one.name in wanted and one.state is ExtensionState.READY],
            errors=[*found.errors.values(), *(error for error in errors if error is not None)],
        )

    def _begin(self, manifest: Manifest) -> Awaitable[str | None]:
        """Reload an extension, or start it if it is new."""
        extension = self._extensions.get(manifest.name)
        if extension is None:
            extension = self._extensions[manifest.name] = self._supervised(manifest)
        return extension.begin_reload(manifest)

    def _supervised(self, manifest: Manifest) -> SupervisedExtension:
        return SupervisedExtension(manifest, self._surroundings, self, self._bridges)

    def _order(self, names: Sequence[str]) -> None:
        """Apply this load order; extensions that are not named come last."""
        ranks = {name: rank for rank, name in enumerate(names)}
        ordered = sorted(self._all(), key=lambda one: ranks.get(one.name, len(ranks)))
        self._extensions.clear()  # and not another dictionary: `extensions` shows this one
        self._extensions.update((one.name, one) for one in ordered)
        self.offers_changed()

    def _is_broken(self, extension: SupervisedExtension) -> bool:
        """Return True if the manifest exists but became invalid, for example while an editor saves it. Its process stays."""
        directory, file = extension.manifest.directory, extension.manifest.script or extension.manifest.file
        where, what = (directory, directory / FILE) if file is None else (file, file)
        return where in self.discovered.errors and what.exists()


def _why_not(manifest: Manifest) -> str:
    """Explain why a running extension is not found any more."""
    if manifest.file or manifest.script or manifest.restarts_when_stuck:  # it never had an `extension.json`
        return f"{manifest.name} is not configured to start any more; reload all extensions"
    try:
        found = read_manifest(manifest.directory)
    except ManifestError as error:
        return str(error)
    if found.name != manifest.name:
        return f"{manifest.directory / FILE} is named {found.name} now; reload all extensions"
    return f"{manifest.name} is not configured to start any more; reload all extensions"


async def _tried(extension: SupervisedExtension) -> None:
    await extension.until(lambda: extension.was_tried)


async def _stopped(extension: SupervisedExtension) -> None:
    await extension.until(lambda: extension.state is ExtensionState.STOPPED)
