"""Serves `tools/*.py`, one tool for each file."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ..peer import HostPeer
from ..pipe import log
from ..registry import RegisteredTool, make_tool
from .files import ContractError, import_file
from .guard import ModuleGuard
from .reload import Reloader


class Tools:
    """Registers module files as tools."""

    def __init__(self, peer: HostPeer, guard: ModuleGuard | None = None) -> None:
        self._peer = peer
        self._guard = guard

    def load(self, path: Path) -> RegisteredTool:
        """Load the tool that a file defines."""
        run = getattr(import_file(path, self._guard), "run", None)
        if not callable(run):
            raise ContractError(f"{path.name} defines no function run(): a tool is a file with `async def run(…)`")
        try:
            tool = make_tool(run, path.stem, options={}, offers_call=False)
        except TypeError as error:
            raise ContractError(f"{path.name}: {error}") from error
        for doubt in tool.doubts():
            log(f"{path.name}: {doubt}; the model may send anything")
        return tool

    def adopt(self, name: str, module: RegisteredTool) -> None:
        """Register a tool, replacing its earlier version."""
        self._peer.registry.tools[name] = module
        self._peer.pipe.send(module.frame)

    def drop(self, name: str) -> None:
        """Remove the registration of a tool."""
        if self._peer.registry.tools.pop(name, None) is not None:
            self._peer.pipe.send({"type": "unregister", "kind": "tool", "name": name})


def serve_tools(peer: HostPeer, directories: Sequence[Path], guard: ModuleGuard | None = None) -> None:
    """Serve the tools of some directories until the host ends it. `guard` decides which files may run."""
    if guard is not None:
        guard.install()
    # At the end of the path: a tool named `email` or `calendar` must not hide the standard module of that name.
    sys.path.extend(map(str, directories))
    peer.run(prepare=Reloader(peer.pipe, Tools(peer, guard), directories).start)
