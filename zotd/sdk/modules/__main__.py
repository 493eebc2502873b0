"""Starts the program that serves Python modules, as a module of its package or by its path."""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path


def adopt() -> None:
    """Import the SDK around this file as `zotd.sdk`, for an interpreter without zotd or with another version."""
    here = Path(__file__).absolute().parent
    # When started by path, this directory comes first on sys.path, and its `files` or `tools` would hide other modules.
    sys.path = [entry for entry in sys.path if Path(entry).absolute() != here]
    if importlib.util.find_spec("zotd") is None:
        # An empty package, so that `zotd.sdk` can be imported below it.
        sys.modules["zotd"] = types.ModuleType("zotd")
    spec = importlib.util.spec_from_file_location(
        "zotd.sdk", here.parent / "__init__.py", submodule_search_locations=[str(here.parent)]
    )
    assert spec is not None
    assert spec.loader is not None
    sys.modules["zotd.sdk"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules["zotd.sdk"])


if __package__:
    from .program import main
else:
    adopt()
    from zotd.sdk.modules.program import main

main()
