"""The host program of Python modules as an extension: one process for the `tools/*.py` of a workspace (`docs/extensions.md`)."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import zotd
from zotd.exthost.discovery import is_directory
from zotd.exthost.manifest import Manifest

PROGRAM = Path(zotd.__file__).parent / "sdk" / "modules"

NAME_CHARS = 60
"""Of a directory's name, in the extension's."""


def tools_host(directories: Sequence[Path], *, cwd: Path, python: str | None) -> Manifest | None:
    """The host for the tools in these `extensions` directories, of which the first wins; None: there are none.

    `python`: the interpreter, a word for PATH or a path, which may begin in `cwd`; None, or not there: this program's.
    Blocks for a look at the directories.
    """
    there = [directory for directory in directories if is_directory(directory / "tools")]
    if not there:
        return None
    return Manifest(
        directory=cwd,
        name=f"py-{_named(cwd)}",
        argv=(interpreter(python, cwd), str(PROGRAM), *map(str, there), "--name", f"py-{_named(cwd)}"),
        description="Python modules: " + ", ".join(str(directory / "tools") for directory in there),
        language="python",
        restarts_when_stuck=True,
    )


def _named(cwd: Path) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", cwd.name)[:NAME_CHARS] or "root"


def interpreter(python: str | None, cwd: Path) -> str:
    """What to start: see `tools_host`."""
    if python is None:
        return sys.executable
    if "/" not in python:
        return python
    path = str(cwd / python)
    return path if os.path.exists(path) else sys.executable  # noqa: PTH110  (Path.exists raises where we may not look)
