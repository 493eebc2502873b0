"""The tools and slash commands that a workspace's extensions offer to its sessions."""

from collections.abc import Callable, Collection, Sequence

from msgspec import Struct

from zotd.core.prompts import ExtensionInstructions
from zotd.exthost.calls import ExtensionCallError
from zotd.exthost.contributions import Contributions
from zotd.exthost.extension import SupervisedExtension
from zotd.exthost.surroundings import About
from zotd.exthost.tools import ExtensionTool
from zotd.wire import ext

ACTIONS = ("", "prompt", "insert", "display", "noop", "open_panel", "tool_prompt")
"""Valid actions in the answer to a command; empty means nothing to do."""


ALL_INSTRUCTIONS_CHARS = 32_000
"""Longest instructions of all extensions of a session together, a quarter of what small models read."""


class ExtensionCommand(Struct, frozen=True):
    """A slash command of an extension."""

    name: str
    """As typed, without the slash; `extension:name` if another extension owns the name."""
    description: str
    extension: str


class ExtensionMention(Struct, frozen=True):
    """Something that a prompt can mention of an extension."""

    text: str
    """As it stands behind the `@`."""
    detail: str
    extension: str


class UnknownCommandError(Exception):
    """No extension has this command."""


class Offers:
    """Resolves names among the serving extensions; later registrations are found by the next call."""

    def __init__(
        self,
        extensions: Callable[[], Sequence[SupervisedExtension]],
        *,
        reserved_commands: Collection[str],
        tool_s: float,
        command_s: float,
        activate: Callable[[str, Sequence[str]], None],
    ) -> None:
        """Resolve names among `extensions()`, which returns the current ones in load order.

        `tool_s` and `command_s` are time limits of calls; for `activate` see `ExtensionTool`.
        """
        self._extensions = extensions
        self._reserved_commands = reserved_commands
        self._tool_s = tool_s
        self._command_s = command_s
        self._activate = activate
        self._contributions: Contributions | None = None
        self._tools: tuple[ExtensionTool, ...] | None = None

    def forget(self) -> None:
        """Drop the cached names after a change."""
        self._contributions = self._tools = None

    def conflicts(self) -> list[tuple[str, str]]:
        """Return the extensions that lost a name, with a sentence for each."""
        return self._resolve().conflicts()

    def tools(self) -> Sequence[ExtensionTool]:
        """Return the tools that can be called now, in load order, including `deferred` ones that are not yet shown."""
        if self._tools is None:  # built lazily: commands do not need them, and there may be thousands
            owners = {one.name: one for one in self._extensions()}
            self._tools = tuple(
                ExtensionTool(owners[claim.owner], claim.value, limit_s=self._tool_s, activate=self._activate)
                for claim in self._resolve().tools.winners.values()
            )
        return self._tools

    def instructions(self) -> list[ExtensionInstructions]:
        """Return what extensions tell the model about their tools, in load order; what does not fit is left out."""
        left, found = ALL_INSTRUCTIONS_CHARS, []
        for one in self._extensions():
            words = "" if one.offered is None else one.offered.instructions
            if words and len(words) <= left:
                left -= len(words)
                found.append(ExtensionInstructions(one.name, words))
        return found

    def mentions(self) -> list[ExtensionMention]:
        """Return what prompts can mention, in load order."""
        offers = [(one.name, one.offered.mentions) for one in self._extensions() if one.offered is not None]
        return [ExtensionMention(one.text, one.detail, owner) for owner, mentions in offers for one in mentions]

    def commands(self) -> list[ExtensionCommand]:
        """Return the slash commands that can be invoked now: owned names first, then qualified ones."""
        names = self._resolve().commands
        return [
            ExtensionCommand(claim.name, claim.value.description, claim.owner) for claim in names.winners.values()
        ] + [
            ExtensionCommand(f"{claim.owner}:{claim.name}", claim.value.description, claim.owner)
            for claim in names.qualified.values()
            # A qualified name is listed only for a command that has lost its plain one.
            if names.winners.get(names.fold(claim.name)) is not claim
        ]

    def has_command(self, name: str) -> bool:
        """Return True if `invoke` would find the command now."""
        return self._resolve().commands.find(name) is not None

    async def invoke(
        self, name: str, args: str, *, about: About, client: str | None
    ) -> tuple[str, ext.CommandResponse]:
        """Run a slash command; return its extension and the answer. A failure is a response with `error`.

        Raises:
            UnknownCommandError: no extension has this command.
        """
        claim = self._resolve().commands.find(name)
        if claim is None:
            raise UnknownCommandError(f"no extension has the command /{name}")
        extension = next(one for one in self._extensions() if one.name == claim.owner)
        peer = await extension.available(session=about.session)
        if peer is None:
            return extension.name, ext.CommandResponse("", error=f"{extension.condition}; try /{name} again later")

        def frame(key: str) -> ext.CommandInvoked:
            return ext.CommandInvoked(
                key, claim.name, args.strip(), about.session, client, about.cwd_for(extension.manifest)
            )

        try:
            answer = await peer.call(ext.CommandResponse, frame, limit_s=self._command_s, session=about.session)
        except ExtensionCallError as error:
            return extension.name, ext.CommandResponse("", error=f"/{name} failed: {extension.name} {error}")
        assert isinstance(answer, ext.CommandResponse)
        if not answer.error and answer.action not in ACTIONS:
            unknown = f'/{name} failed: {extension.name} answered with the unknown action "{answer.action[:80]}"'
            return extension.name, ext.CommandResponse(answer.id, error=unknown)
        return extension.name, answer

    def _resolve(self) -> Contributions:
        # Cached until the next change: every model call asks for the tools.
        if self._contributions is None:
            offers = [(one.name, one.offered) for one in self._extensions() if one.offered is not None]
            self._contributions = Contributions(offers, self._reserved_commands)
        return self._contributions
