"""What one session has of extensions: tools, guards, slash commands, and what they show.

Hosts start and stop processes; `sessions.resolution` makes one list of them.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from msgspec.structs import replace

from zotd.contributions.events import EventSubscriptions
from zotd.contributions.guards import Hooks
from zotd.contributions.resolution import Resolution, ScopeLike
from zotd.contributions.tool_search import finder, unlisted
from zotd.contributions.toolbox import Toolbox, choose
from zotd.contributions.ui_state import UiState
from zotd.core.life import ExtensionState
from zotd.core.records import Settings
from zotd.core.run_watch import RunWatch
from zotd.exthost.extension import SupervisedExtension
from zotd.exthost.guards import Guards, GuardVerdict
from zotd.exthost.host import READY_S, ExtensionTimeouts, Wish
from zotd.exthost.offers import Offers
from zotd.exthost.surroundings import About
from zotd.ledger.ledger import Ledger
from zotd.wire import events, ext

Submission = ext.Submit | ext.SubmitSlash
"""A prompt, or a slash command, that an extension wants run."""

OfPanel = ext.PanelKey | ext.PanelResize | ext.PanelClosed
"""What happens to a panel."""


LISTED_TOOLS = 60
"""Default of `ext.listed_mcp_tools`."""

TELL_AFTER_S = 1.0
"""How long a run waits for extensions before its clients are told which ones; most start within 0.3 s."""


class Extensions:
    """The extensions of one session."""

    def __init__(
        self,
        ledger: Ledger,
        resolution: Resolution,
        *,
        limits: ExtensionTimeouts,
        listed_tools: int = LISTED_TOOLS,
        reserved_commands: Sequence[str],
        submit: Callable[[str, Submission], None],
        watch: RunWatch,
    ) -> None:
        """`submit` is given an extension's name, and what it wants submitted; `watch` is told of guards' answers.

        `listed_tools`: how many tools of MCP servers the model is shown; if there are more, it gets a tool that finds them.
        """
        self.about = About(ledger.row.id, ledger.row.cwd)
        self.resolution = resolution
        self.ui_state = UiState(ledger)
        self.subscriptions = EventSubscriptions(resolution.used, self.about, is_new=lambda: not ledger.row.messages)
        """Those who hear of what happens in the session."""
        self.guards = Guards(resolution.used, limits.intercept_s, watch)
        self.offers = Offers(
            resolution.used,
            reserved_commands=reserved_commands,
            tool_s=limits.tool_s,
            command_s=limits.command_s,
            activate=lambda _, tools: self.activate(tools),
        )
        self._ledger = ledger
        self._submit = submit
        self._listed_tools = listed_tools
        self._activated: set[str] = set()
        self._hinted: set[str] = set()
        self._patience: asyncio.Timeout | None = None
        """How long `ready_for_run` waits, while it does."""
        self._toolbox: tuple[Settings, Toolbox] | None = None
        self._order: list[str] = []
        """Names of all tools that the model has seen, those that are gone included: one that returns gets its place."""
        self.revision = 0
        """Counts changes of what extensions offer, of their states, and of the trust in their code."""
        self._is_heard = False
        """Its extensions, if it ever had any, are told what happens in the session."""
        self._begin_telling()

    # --- for runs ---------------------------------------------------------------------------------------------

    async def ready(self) -> None:
        """Wait for extensions that are still starting, at most `READY_S`; what comes later is used when it is there."""
        await self._settle(asyncio.timeout(READY_S))

    async def ready_for_run(self) -> None:
        """The same, until `hurry`."""
        if not any(map(_is_starting, self.resolution.layers)):
            return
        self._patience = asyncio.timeout(READY_S)
        telling = asyncio.get_running_loop().call_later(TELL_AFTER_S, self._tell_who_is_slow)
        try:
            await self._settle(self._patience)
        finally:
            telling.cancel()
            self._patience = None

    async def admit(self, prompt: str, mode: str) -> GuardVerdict[str]:
        """Ask the guards about the prompt of the run that is being prepared; `hurry` ends the wait.

        The value is what the model reads beside the prompt.
        """
        if not self.guards.of("user_prompt_submit"):
            return GuardVerdict("")
        self._patience = asyncio.timeout(None)
        with suppress(TimeoutError):
            async with self._patience:
                return await self.guards.user_prompt_submit(self.about, prompt, mode)
        return GuardVerdict("")

    def hurry(self) -> None:
        """The run that is being prepared is aborted: stop waiting for extensions."""
        if self._patience is not None:
            self._patience.reschedule(asyncio.get_running_loop().time())
            self._patience = None  # it can be moved no more once it is over

    def toolbox(self, settings: Settings) -> Toolbox:
        """The tools of the next step; the same object as long as nothing has changed."""
        if self._toolbox is None or self._toolbox[0] != settings:
            tools = self.offers.tools()
            # A list that a person has chosen is short enough.
            lazy = unlisted(tools, self._listed_tools) if settings.tools is None else []
            chosen = choose(
                settings,
                tools,
                self._activated,
                self._order,
                unlisted={tool.spec.name for tool in lazy},
                finders=[finder(lazy, self.activate)] if lazy else (),
            )
            self._order += [spec.name for spec in chosen.specs if spec.name not in self._order]
            self._toolbox = settings, chosen
        return self._toolbox[1]

    def hooks(self, *, streams: bool) -> Hooks:
        """What a run asks its guards with. `streams`: see `Hooks`."""
        return Hooks(self.guards, self.about, self.subscriptions.emit, streams)

    def skills(self) -> list[str]:
        """The directories of skills that extensions bring along."""
        used = [extension for extension in self.resolution.extensions if not self.resolution.is_outdated(extension)]
        named = (path for extension in used for path in extension.manifest.skills)
        return [str(path.parent if path.name == "SKILL.md" else path) for path in named]

    def hints(self) -> list[str]:
        """What people should know when a run starts: extensions that are missing from it, and why; each once."""
        missing = (sentence for one in self.resolution.extensions if (sentence := _why_missing(one)) is not None)
        new = [sentence for sentence in (*self.resolution.warnings(), *missing) if sentence not in self._hinted]
        self._hinted.update(new)
        return new

    def send(self, name: str, frame: OfPanel) -> bool:
        """Send a frame about a panel of this session; False when the extension is not there to get it."""
        extension = self.resolution.find(name)
        if extension is None:
            return False
        cwd = self.about.cwd_for(extension.manifest)
        return extension.send(replace(frame, session_id=self.about.session, cwd=cwd))

    # --- hearing from them ------------------------------------------------------------------------------------

    def wish(self, extension: str, wish: Wish) -> str | None:
        """An extension wants something of this session; a sentence when it cannot have it."""
        if isinstance(wish, ext.Submit | ext.SubmitSlash):
            self._submit(extension, wish)
            return None
        return self.ui_state.take(extension, wish)

    def activate(self, tools: Sequence[str]) -> None:
        """Show these deferred tools to the model from now on."""
        known = {tool.spec.name for tool in self.offers.tools()}
        self._activated.update(known.intersection(tools))
        self._toolbox = None

    def changed(self) -> None:
        """Extensions, what they offer, or the trust in them has changed."""
        self.revision += 1
        self.resolution.refresh()
        self._toolbox = None
        self.offers.forget()
        self._begin_telling()
        self.subscriptions.begin()

    def state_changed(self, extension: str, state: ExtensionState, reason: str) -> None:
        """An extension has another state, or goes on as before for a reason: what should have replaced it has failed."""
        self.changed()
        if state not in {ExtensionState.READY, ExtensionState.STARTING}:
            self.ui_state.left(extension)
        if reason:
            self.ui_state.note(
                extension, "error" if state is ExtensionState.PARKED else "warn", f"{extension} {reason}"
            )

    def end(self) -> None:
        """The session leaves memory, or gets other extensions: these hear and show nothing more of it."""
        self.subscriptions.end()
        if self._is_heard:
            self._ledger.observers.remove(self._committed)
        self.ui_state.clear()

    # --- inside -----------------------------------------------------------------------------------------------

    def _tell_who_is_slow(self) -> None:
        slow = [one.name for one in self.resolution.extensions if not one.was_tried and one.serving is None]
        if slow:
            words = f"waiting up to {READY_S:g} s for extensions that have not said hello: {', '.join(slow)}"
            self._ledger.live([events.Notice("info", words, session=self._ledger.label)])

    async def _settle(self, patience: asyncio.Timeout) -> None:
        with suppress(TimeoutError):
            async with patience:
                for layer in self.resolution.layers:
                    await layer.started.wait()
                    await layer.host.wait_ready(READY_S)

    def _begin_telling(self) -> None:
        if self.resolution.extensions and not self._is_heard:
            self._is_heard = True
            self._ledger.observers.append(self._committed)

    def _committed(self, shown: Sequence[events.Event]) -> None:
        if self.resolution.extensions:  # else no frame is built for nothing: results are long
            for event in shown:
                self.subscriptions.tell(event)


def _is_starting(layer: ScopeLike) -> bool:
    """Whether a run has to wait for extensions of this host, which have not been found or not been tried."""
    return not layer.started.is_set() or any(not one.was_tried for one in layer.host.extensions)


def _why_missing(extension: SupervisedExtension) -> str | None:
    """A sentence about an extension that crashed or has not said hello; None when it serves, or was stopped."""
    if extension.state in {ExtensionState.RESTARTING, ExtensionState.PARKED}:
        return f"{extension.condition}; its log: zotctl ext logs {extension.name}"
    if not extension.was_tried and extension.serving is None:
        return f"{extension.name} has not said hello yet; the run continues without it"
    return None
