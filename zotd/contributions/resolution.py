"""The extensions of several hosts as one session sees them: in load order (`docs/extensions.md`), of one name the first.

--ext of the session > MCP servers of its clients > the project's > everybody's by name, those of scope `daemon` among them
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from zotd.contributions.trust import WorkspaceTrust
from zotd.core.life import ExtensionState
from zotd.exthost.extension import SupervisedExtension
from zotd.exthost.host import Host


class ScopeLike(Protocol):
    """A host that may still be starting."""

    host: Host
    started: asyncio.Event
    """Set when it has looked for its extensions."""
    trusting: WorkspaceTrust | None
    """Trust of the workspace; its untrusted code is not used."""
    is_watched: bool
    """`trusting` is up to date, because changes of the workspace's code are reported."""


class Resolution:
    """The extensions of one session."""

    def __init__(self, *, own: ScopeLike | None, shared: Sequence[ScopeLike], home: Path) -> None:
        """`own`: those that only this session has. `home`: what lies there is for all workspaces, and comes last."""
        self.layers = [*([own] if own else []), *shared]
        self._own = own
        self._home = f"{home}/"
        self.extensions: Sequence[SupervisedExtension] = ()
        """Those that the session has now. A plain attribute: each event of the session looks here for receivers."""
        self.refresh()

    def bring(self, layer: ScopeLike) -> None:
        """Add a host that clients have brought."""
        self.layers.insert(0 if self._own is None else 1, layer)
        self.refresh()

    def withdraw(self, layer: ScopeLike) -> None:
        """Remove it."""
        self.layers.remove(layer)
        self.refresh()

    def refresh(self) -> None:
        """Compute `extensions` again; call it when an extension has come or gone."""
        found: dict[str, SupervisedExtension] = {}
        for extension in self._every():
            found.setdefault(extension.name, extension)
        self.extensions = sorted(found.values(), key=self._rank)

    def used(self) -> Sequence[SupervisedExtension]:
        """Return `extensions`, for those that keep a function and not the list."""
        return self.extensions

    def find(self, name: str) -> SupervisedExtension | None:
        """The one with this name."""
        return next((extension for extension in self.extensions if extension.name == name), None)

    def has(self, name: str, host: Host) -> bool:
        """Whether the one with this name is this host's, and not that of one that comes before it."""
        return self.find(name) in host.extensions

    def warnings(self) -> list[str]:
        """What the people of the session should know: what they have named and cannot be used, and what is not trusted."""
        named = self._own.host.discovered.errors.values() if self._own is not None else ()
        asked = [layer.trusting.sentence for layer in self.layers if layer.trusting is not None]
        return [*named, *(sentence for sentence in asked if sentence is not None)]

    def absent(self, tool: str) -> str:
        """Why a tool of this name is not there, as a sentence for the model; empty: nothing is known of it."""
        for one in self.extensions:
            if one.withdrawn is not None and tool in one.withdrawn.tools:
                again = "a person can start it again with: zotctl ext reload " + one.name
                if one.state is not ExtensionState.PARKED:
                    again = "it restarts by itself; wait a second and call the tool again"
                return f'the tool "{tool}" is not available at the moment: {one.condition}; {again}'
        for layer in self.layers:
            if layer.trusting is not None and layer.trusting.question is not None:
                return layer.trusting.absent(tool)
        return ""

    def is_outdated(self, extension: SupervisedExtension) -> bool:
        """Whether what lies in its directory is not what runs: it has changed since a person trusted it."""
        changed = [layer for layer in self.layers if layer.trusting is not None and layer.trusting.is_changed]
        return bool(extension.manifest.granted) and any(extension in layer.host.extensions for layer in changed)

    def hidden(self) -> list[tuple[str, str]]:
        """The names of those that are not used because of another host's, and a sentence about each."""
        pairs = [(one, self.find(one.name)) for one in self._every()]
        return [
            (one.name, f"{one.manifest.directory} is hidden by {user.manifest.directory}")
            for one, user in pairs
            if user is not None and user is not one
        ]

    def _every(self) -> list[SupervisedExtension]:
        return [extension for layer in self.layers for extension in layer.host.extensions]

    def _rank(self, extension: SupervisedExtension) -> tuple[int, str]:
        if self._own is not None and extension in self._own.host.extensions:
            return 0, ""
        directory = extension.manifest.directory
        # By text, for this is done anew for every session at every registration: `is_relative_to` takes 3 us.
        return (2, directory.name) if str(directory).startswith(self._home) else (1, "")
