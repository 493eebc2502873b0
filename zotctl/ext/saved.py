"""`zotctl ext reload --watch`: reloads extensions when their files are saved."""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from zotctl import link
from zotctl.ext import scope
from zotd.client import place
from zotd.client.errors import ClientError
from zotd.client.fields import children, text
from zotd.client.interrupts import Watch
from zotd.sanitize import one_line

LOOK_S = 0.5
"""Time between two looks at the files. A save is complete when two looks see the same."""

MAX_FILES = 5_000
"""Most files of one extension that are looked at."""

SKIPPED = frozenset({".git", "__pycache__", "node_modules", ".venv", "recordings"})
"""Directories that change without being saved, or that no process reads at its start."""

Versions = dict[str, tuple[int, int, int]]
"""Time of modification, size and inode by path."""


def watch(args: argparse.Namespace, reload: Callable[[argparse.Namespace], int]) -> int:
    """Call `reload` with the name of each extension of which a file was saved, until a signal."""
    if place.of(os.environ).is_remote:
        raise ClientError("--watch looks at files of this machine, and the extensions are on another one")
    with Watch(sys.stdout.fileno()) as waiting:
        directories = _directories(args)
        loaded = {name: versions(path) for name, path in directories.items()}
        if sys.stderr.isatty():  # not before the first look, which would miss a save
            sys.stderr.write(f"watching {one_line(', '.join(directories))}; press Ctrl-C to stop\n")
        for name in _saved(directories, loaded, waiting):
            try:
                reload(argparse.Namespace(**{**vars(args), "name": name}))
            except ClientError as error:  # the daemon may be back at the next save
                sys.stderr.write(f"zotctl: {one_line(str(error))}\n")
            sys.stdout.flush()
    return 0


def _saved(directories: Mapping[str, Path], loaded: Mapping[str, Versions], waiting: Watch) -> Iterator[str]:
    """Yield the name of each extension whose files have changed since it was loaded, and change no more."""
    reloaded, seen = dict(loaded), dict(loaded)
    while True:
        waiting.wait_any([], LOOK_S)
        for name, path in directories.items():
            before, seen[name] = seen[name], versions(path)
            if seen[name] == before != reloaded[name]:
                reloaded[name] = before
                yield name


def versions(directory: Path) -> Versions:
    """Return what tells one version of a directory's files from another."""
    found: Versions = {}
    for path in _files(directory):
        with suppress(OSError):  # deleted meanwhile
            status = os.stat(path)
            found[path] = status.st_mtime_ns, status.st_size, status.st_ino
        if len(found) >= MAX_FILES:
            break
    return found


def _files(directory: Path) -> Iterator[str]:
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        yield from (f"{folder}/{name}" for name in names)


def _directories(args: argparse.Namespace) -> dict[str, Path]:
    """Return the directories of the extensions that are meant; modules and MCP servers have none of their own."""
    with link.connect("zotctl") as connection:
        found = children(connection.call("ext.list", scope.chosen(connection, args)), "extensions")
    directories = {
        text(one, "name"): Path(text(one, "directory"))
        for one in found
        if args.name in {None, text(one, "name")} and text(one, "source") not in {"modules", "mcp"}
    }
    there = {name: path for name, path in directories.items() if (path / "extension.json").exists()}
    if not there:
        raise ClientError(
            "there is no extension with a directory of its own; `zotctl ext list` shows those that are there"
        )
    return there
