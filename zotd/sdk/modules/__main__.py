"""Command line of the host program of Python modules."""

from __future__ import annotations

import sys

if not __package__:
    # Started by path: this directory is no package yet, and comes first on sys.path, where it would hide others' names.
    import importlib.util
    import types
    from pathlib import Path

    here = Path(__file__).absolute().parent
    sys.path = [entry for entry in sys.path if Path(entry).absolute() != here]
    if importlib.util.find_spec("zotd") is None:
        sys.modules["zotd"] = types.ModuleType("zotd")
    sdk = importlib.util.spec_from_file_location(
        "zotd.sdk", here.parent / "__init__.py", submodule_search_locations=[str(here.parent)]
    )
    assert sdk is not None
    assert sdk.loader is not None
    sys.modules["zotd.sdk"] = importlib.util.module_from_spec(sdk)
    sdk.loader.exec_module(sys.modules["zotd.sdk"])
    __package__ = "zotd.sdk.modules"

import argparse
from pathlib import Path

from ..peer import Peer
from .tools import serve_tools


def main() -> None:
    """Serve until the host ends it."""
    parser = argparse.ArgumentParser(prog="modules", description="Serve Python modules as an extension of zot.")
    parser.add_argument(
        "directories", nargs="+", type=Path, metavar="DIR", help="holds tools/ and channels/; first wins"
    )
    parser.add_argument("--channel", metavar="NAME", help="serve channels/NAME.py instead of the tools")
    parser.add_argument("--name", help="of the extension; default: py-tools or py-NAME")
    options = parser.parse_args()
    directories = [directory.absolute() for directory in options.directories]
    peer = Peer(options.name or f"py-{options.channel or 'tools'}", "1")
    if not options.channel:
        serve_tools(peer, [directory / "tools" for directory in directories])
        return
    from .channels import serve_channel  # noqa: PLC0415  needs asyncio, which the tools may not

    serve_channel(peer, options.channel, [directory / "channels" for directory in directories])


main()
