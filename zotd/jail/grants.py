"""Which files and directories a person can open to commands in a jail: a *grant*.

A grant is never wider than what was refused needs, and some places are never opened: what is hidden, what programs listen in, what
git and this program run, and every directory that contains one of them, the home directory among them.
"""

import functools
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from zotd.jail.policy import JailPolicy, is_in

PATH_BYTES = 4095
"""Longest path that the kernel takes."""

KERNEL = ("/proc", "/sys", "/dev")
"""Their files refuse root, too; bubblewrap makes others of their names."""

_STEERING = frozenset({".git", ".zot"})
"""Directories whose files decide which programs run."""


def place_for(path: str, policy: JailPolicy, *, removes: bool) -> str | None:
    """Return the smallest place that has to be opened so that a command can change this file. Blocks for some `stat`.

    Args:
        path: a real path.
        policy: what has refused it.
        removes: the command has tried to remove, rename or replace the file, which changes the directory of it.

    Returns:
        The file itself; its directory if the file is absent or `removes` is set. None: it cannot be opened, or the user could
        not change it without a jail.
    """
    place = os.path.dirname(path) if removes or not os.path.lexists(path) else path
    if policy.may_write(path) or policy.may_write(place) or not os.access(place, os.W_OK):
        return None
    kept = (*policy.hidden, *policy.sockets)
    return next(kept_grants([place], cwd=policy.cwd, kept=(*kept, *policy.carved, *policy.protected)), None)


def kept_grants(granted: Iterable[str], *, cwd: str, kept: Sequence[str]) -> Iterator[str]:
    """Yield those that may be opened now. Blocks for some `stat`.

    Args:
        granted: absolute paths.
        cwd: the working directory. What contains it is not opened: commands could then replace it.
        kept: what no command may get at.
    """
    apart = (*kept, *KERNEL, *_own_programs(os.environ.get("PATH", os.defpath)))
    for path in granted:
        is_apart = not any(is_in(path, [one]) or is_in(one, [path]) for one in apart)
        is_named = path.isprintable() and "\ufffd" not in path and len(path.encode()) <= PATH_BYTES
        if (
            is_apart
            and is_named
            and not is_in(cwd, [path])
            and _STEERING.isdisjoint(path.split("/"))
            and is_direct(path)
        ):
            yield path


def is_direct(path: str) -> bool:
    """Return whether this is the real path of something that exists."""
    return os.path.isabs(path) and os.path.realpath(path) == path and os.path.lexists(path)


@functools.cache
def _own_programs(path: str) -> tuple[str, ...]:
    """What runs outside of every jail for each command: this program, its interpreter, and the bubblewrap on `path`."""
    program = shutil.which("bwrap", path=path)
    package = Path(__file__).parents[1]
    found = (sys.prefix, sys.base_prefix, package, *([program] if program else ()))
    return tuple(map(os.path.realpath, found))
