"""The command line of the program that serves Python modules."""

from __future__ import annotations

import argparse
from pathlib import Path

from ..peer import HostPeer
from .guard import ModuleGuard, granted
from .tools import serve_tools


def main() -> None:
    """Serve until the host ends it."""
    parser = argparse.ArgumentParser(prog="modules", description="Serve Python modules as an extension of zot.")
    parser.add_argument(
        "directories", nargs="+", type=Path, metavar="DIR", help="holds tools/ and channels/; first wins"
    )
    parser.add_argument("--channel", metavar="NAME", help="serve channels/NAME.py instead of the tools")
    parser.add_argument("--name", help="of the extension; default: py-tools or py-NAME")
    parser.add_argument("--workspace", type=Path, metavar="DIR", help="where the paths of --granted begin")
    parser.add_argument("--guard", type=Path, metavar="DIR", help="run only files of DIR that --granted names")
    parser.add_argument("--granted", action="append", default=[], metavar="DIGEST:PATH")
    options = parser.parse_args()
    directories = [directory.absolute() for directory in options.directories]
    peer = HostPeer(options.name or f"py-{options.channel or 'tools'}", "1")
    if not options.channel:
        guard = ModuleGuard(options.workspace, options.guard, granted(options.granted)) if options.guard else None
        serve_tools(peer, [directory / "tools" for directory in directories], guard)
        return
    from .channels import serve_channel  # noqa: PLC0415  needs asyncio, which tools may do without

    serve_channel(peer, options.channel, [directory / "channels" for directory in directories])
