"""The host program of Python modules as an extension: one process for the `tools/*.py` of a workspace (`docs/extensions.md`)."""

import logging
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import zotd
from zotd.exthost.discovery import is_directory
from zotd.exthost.manifest import Manifest

log = logging.getLogger(__name__)

PROGRAM = Path(zotd.__file__).parent / "sdk" / "modules"

PREFIX = "py-"
"""Begins the names of these extensions."""

NAME_CHARS = 60
"""Of a directory's name, in the extension's."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """A directory of which the host runs only what was trusted."""

    directory: Path
    digests: Mapping[str, str]
    """As `contents.Contents.digests`, by paths from the workspace."""


def tools_host(
    directories: Sequence[Path],
    *,
    cwd: Path,
    python: str | None,
    uses_workspace: bool = False,
    guarded: Guarded | None = None,
) -> Manifest | None:
    """The host for the tools in these `extensions` directories, of which the first wins; None: there are none.

    `python`: the interpreter, a word for PATH or a path, which may begin in `cwd`; None, or not there: this program's.
    `uses_workspace`: somebody trusts `cwd`, so that an interpreter that lies in it may run.
    Blocks for a look at the directories.
    """
    there = [directory for directory in directories if is_directory(directory / "tools")]
    if not there:
        return None
    return Manifest(
        directory=cwd,
        name=PREFIX + _named(cwd),
        argv=(
            interpreter(python, cwd, uses_workspace=uses_workspace),
            str(PROGRAM),
            *map(str, there),
            "--name",
            PREFIX + _named(cwd),
            *(_granted(guarded, cwd) if guarded is not None and guarded.directory in there else ()),
        ),
        description="Python modules: " + ", ".join(str(directory / "tools") for directory in there),
        language="python",
        restarts_when_stuck=True,
    )


def _named(cwd: Path) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", cwd.name)[:NAME_CHARS] or "root"


def _granted(guarded: Guarded, cwd: Path) -> list[str]:
    """Arguments that name what may be imported: every file of the directory's `tools`, and what links lead to."""
    tools = inside(str(guarded.directory / "tools"), cwd)
    above = inside(str(guarded.directory), cwd)
    words = ["--workspace", str(cwd), "--guard", str(guarded.directory / "tools")]
    for path, digest in guarded.digests.items():
        if above is None or not path.startswith(f"{above}/") or path == tools or path.startswith(f"{tools}/"):
            words += ["--granted", f"{digest}:{path}"]
    return words


def interpreter(python: str | None, cwd: Path, *, uses_workspace: bool) -> str:
    """What to start: see `tools_host`.

    A relative path that leads out of `cwd` is not used: the repository above may not be the user's either.
    """
    if python is None:
        return sys.executable
    if "/" not in python:
        return python
    is_inside = inside(python, cwd) is not None
    if not is_inside and not Path(python).is_absolute():
        log.warning("ext.python points outside of %s and is not used there; use an absolute path", cwd)
        return sys.executable
    path = str(cwd / python)
    if is_inside and not uses_workspace:
        return sys.executable
    return path if os.path.exists(path) else sys.executable  # noqa: PTH110  (Path.exists raises where we may not look)


def inside(path: str, cwd: Path) -> str | None:
    """A path, which may begin in `cwd`, as one from there without `..`; None when it leads out by its names."""
    found = os.path.relpath(cwd / path, cwd)
    return None if found in {".", ".."} or found.startswith("../") else found
