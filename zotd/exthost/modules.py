"""The extension that runs the `tools/*.py` of a workspace, in one process for all (`docs/extensions.md`)."""

import logging
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

import zotd
from zotd.exthost.discovery import is_directory
from zotd.exthost.manifest import Manifest

log = logging.getLogger(__name__)

PROGRAM = Path(zotd.__file__).parent / "sdk" / "modules"

PREFIX = "py-"
"""Prefix of the names of these extensions."""

NAME_CHARS = 60
"""Longest part of the directory's name in the extension's name."""


class Guarded(Struct, frozen=True):
    """A directory of which the host runs only trusted files."""

    directory: Path
    digests: Mapping[str, str]
    """Digests of the trusted files, by path relative to the workspace."""


def tools_host(
    directories: Sequence[Path],
    *,
    cwd: Path,
    python: str | None,
    uses_workspace: bool = False,
    guarded: Guarded | None = None,
) -> Manifest | None:
    """Return the manifest of the host for the tools in these `extensions` directories, or None if there are none.

    If two directories have a tool of the same name, the first is used. Blocks for a look at the directories.

    Args:
        directories: `extensions` directories, in order of precedence.
        cwd: the working directory of the sessions, in which the tools run.
        python: the interpreter: a name to look up in PATH, or a path, relative to `cwd`. None or missing: that of zotd.
        uses_workspace: `cwd` is trusted, so an interpreter inside it may run.
        guarded: the directory whose files must match the trusted digests.
    """
    # Without a `tools` directory no process is needed, and most workspaces have none.
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
        # A Python tool that hangs would otherwise block all other tools of the workspace.
        restarts_when_stuck=True,
    )


def _named(cwd: Path) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", cwd.name)[:NAME_CHARS] or "root"


def _granted(guarded: Guarded, cwd: Path) -> list[str]:
    """Return the arguments that name the importable files: those below `tools`, and the targets of links."""
    tools = inside(str(guarded.directory / "tools"), cwd)
    above = inside(str(guarded.directory), cwd)
    words = ["--workspace", str(cwd), "--guard", str(guarded.directory / "tools")]
    for path, digest in guarded.digests.items():
        # Of the `extensions` directory only `tools` is importable. Other paths are targets of links in it.
        if above is None or not path.startswith(f"{above}/") or path == tools or path.startswith(f"{tools}/"):
            words += ["--granted", f"{digest}:{path}"]
    return words


def interpreter(python: str | None, cwd: Path, *, uses_workspace: bool) -> str:
    """Choose the interpreter; see `tools_host`.

    A relative path that leads out of `cwd` is not used, because the directories above may belong to a repository too.
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
    # Tools of $ZOT_HOME run in untrusted workspaces too, but not with an interpreter from there.
    if is_inside and not uses_workspace:
        return sys.executable
    return path if os.path.exists(path) else sys.executable  # noqa: PTH110  (Path.exists raises if access is denied)


def inside(path: str, cwd: Path) -> str | None:
    """Return a path relative to `cwd` without `..`, or None if it leads out of `cwd`. Links are not resolved."""
    found = os.path.relpath(cwd / path, cwd)
    return None if found in {".", ".."} or found.startswith("../") else found
