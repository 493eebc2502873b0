"""What one session has of extensions: tools, guards, slash commands, and what they show.

    --ext of the session > the workspace's > the daemon's            each a `Host`; of one name the first counts

Hosts start and stop processes; this sees them as one list, in load order (`docs/extensions.md`).
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from zotd.core.life import State
from zotd.core.records import Settings
from zotd.exthost.extension import About, Extension
from zotd.exthost.guards import Guards
from zotd.exthost.host import READY_S, Host, Limits, Wish
from zotd.exthost.offers import Offers
from zotd.exthost.tools import ExtensionTool
from zotd.sessions.board import Board
from zotd.sessions.hooks import Hooks
from zotd.sessions.ledger import Ledger
from zotd.sessions.telling import Audience
from zotd.sessions.toolbox import Toolbox, choose
from zotd.sessions.trusting import Trusting
from zotd.wire import events, ext

log = logging.getLogger(__name__)


Submission = ext.Submit | ext.SubmitSlash
"""A prompt, or a slash command, that an extension wants run."""

OfPanel = ext.PanelKey | ext.PanelResize | ext.PanelClosed
"""What happens to a panel."""


class Layer(Protocol):
    """A host that may still be starting."""

    host: Host
    started: asyncio.Event
    """Set when it has looked for its extensions."""
    trusting: Trusting | None
    """Of a workspace with code of its own."""


class Extensions:
    """The extensions of one session."""

    def __init__(
        self,
        ledger: Ledger,
        *,
        own: Layer | None,
        shared: Sequence[Layer],
        home: Path,
        limits: Limits,
        reserved_commands: Sequence[str],
        submit: Callable[[str, Submission], None],
    ) -> None:
        """`own`: those that only this session has. `home`: what lies there is for all workspaces, and comes last.

        `submit` is given an extension's name, and what it wants submitted.
        """
        self.about = About(ledger.row.id, ledger.row.cwd)
        self.board = Board(ledger)
        self.audience = Audience(self._listed, self.about)
        """Those who hear of what happens in the session."""
        self.guards = Guards(self._listed, limits.intercept_s)
        self.offers = Offers(
            self._listed,
            reserved_commands=reserved_commands,
            tool_s=limits.tool_s,
            command_s=limits.command_s,
            activate=lambda _, tools: self.activate(tools),
        )
        self._ledger = ledger
        self._own = own
        self._layers = [*([own] if own else []), *shared]
        self._home = home
        self._submit = submit
        self._activated: set[str] = set()
        self._hinted: set[str] = set()
        self._patience: asyncio.Timeout | None = None
        """How long `ready_for_run` waits, while it does."""
        self._list: Sequence[Extension] | None = None
        self._toolbox: tuple[Settings, Sequence[ExtensionTool], Toolbox] | None = None
        ledger.observer = self._committed

    # --- for runs ---------------------------------------------------------------------------------------------

    async def ready(self) -> None:
        """Wait for extensions that are still starting, at most `READY_S`; what comes later is used when it is there."""
        await self._settle(asyncio.timeout(READY_S))

    async def ready_for_run(self) -> None:
        """The same, until `hurry`."""
        self._patience = asyncio.timeout(READY_S)
        try:
            await self._settle(self._patience)
        finally:
            self._patience = None

    def hurry(self) -> None:
        """Somebody aborts the run that is being prepared: wait no longer for it."""
        if self._patience is not None:
            self._patience.reschedule(asyncio.get_running_loop().time())
            self._patience = None  # it can be moved no more once it is over

    def toolbox(self, settings: Settings) -> Toolbox:
        """The tools of the next step; the same object as long as nothing has changed."""
        extras = self.offers.tools()
        if self._toolbox is None or self._toolbox[:2] != (settings, extras):
            self._toolbox = settings, extras, choose(settings, extras, self._activated)
        return self._toolbox[2]

    def hooks(self, *, streams: bool) -> Hooks:
        """Whom a run asks. `streams`: see `Hooks`."""
        return Hooks(self.guards, self.about, self.audience.emit, streams)

    def skills(self) -> list[str]:
        """The directories of skills that extensions bring along."""
        named = (path for extension in self._listed() for path in extension.manifest.skills)
        return [str(path.parent if path.name == "SKILL.md" else path) for path in named]

    def hints(self) -> list[str]:
        """What people should know when a run starts; each once."""
        found = [layer.trusting.sentence for layer in self._layers if layer.trusting is not None]
        new = [sentence for sentence in found if sentence is not None and sentence not in self._hinted]
        self._hinted.update(new)
        return new

    def send(self, name: str, frame: OfPanel) -> bool:
        """Send a frame about a panel of this session; False when the extension is not there to get it."""
        extension = next((one for one in self._listed() if one.name == name), None)
        if extension is None:
            return False
        cwd = self.about.cwd_for(extension.manifest)
        return extension.send(replace(frame, session_id=self.about.session, cwd=cwd))

    # --- hearing from them ------------------------------------------------------------------------------------

    def wish(self, extension: str, wish: Wish) -> None:
        """An extension wants something of this session."""
        if isinstance(wish, ext.Submit | ext.SubmitSlash):
            self._submit(extension, wish)
            return
        refused = self.board.take(extension, wish)
        if refused is not None:
            log.warning("a %s of %s was dropped: %s", wish.__struct_config__.tag, extension, refused)

    def activate(self, tools: Sequence[str]) -> None:
        """Show these deferred tools to the model from now on."""
        known = {tool.spec.name for tool in self.offers.tools()}
        self._activated.update(known.intersection(tools))
        self._toolbox = None

    def changed(self) -> None:
        """Extensions, or what they offer, came or went."""
        self._list = None
        self._toolbox = None
        self.offers.forget()
        self.audience.begin()

    def state_changed(self, extension: str, state: State, reason: str) -> None:
        """An extension has another state."""
        self.changed()
        if state not in {State.READY, State.STARTING}:
            self.board.left(extension)
        if state in {State.RESTARTING, State.PARKED}:
            self.board.note(extension, "error" if state is State.PARKED else "warn", f"{extension} {reason}")

    def end(self) -> None:
        """The session leaves memory, or gets other extensions: these hear and show nothing more of it."""
        self.audience.end()
        self._ledger.observer = None
        self.board.clear()

    # --- inside -----------------------------------------------------------------------------------------------

    async def _settle(self, patience: asyncio.Timeout) -> None:
        with suppress(TimeoutError):
            async with patience:
                for layer in self._layers:
                    await layer.started.wait()
                    await layer.host.wait_ready(READY_S)

    def _listed(self) -> Sequence[Extension]:
        """All of them, in load order; of one name the first."""
        if self._list is None:
            found: dict[str, Extension] = {}
            for layer in self._layers:
                for extension in layer.host.extensions:
                    found.setdefault(extension.name, extension)
            self._list = sorted(found.values(), key=self._rank)
        return self._list

    def _rank(self, extension: Extension) -> tuple[int, str]:
        """Explicit ones, then the project's, then everybody's by name: those of the daemon are among the last."""
        if self._own is not None and extension in self._own.host.extensions:
            return 0, ""
        directory = extension.manifest.directory
        return (2, directory.name) if directory.is_relative_to(self._home) else (1, "")

    def _committed(self, shown: Sequence[events.Event]) -> None:
        for event in shown:
            if isinstance(event, events.UserMessage):
                self.board.clear_notes()
            self.audience.tell(event)
