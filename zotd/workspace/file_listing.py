"""Which files a working directory has: what git knows of them, or what is there where git knows nothing.

git ls-files, which a repository's own configuration cannot have start a program   ->  its paths
no git, no repository, a broken one, one of another user                           ->  a walk that obeys `.gitignore`
"""

import asyncio
import hashlib
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from zotd.process import spawn
from zotd.sanitize import is_harmless
from zotd.tools.shared import DirectoryWalk, in_thread, repository_of

MAX_PATHS = 200_000
"""Most paths of one directory, about 40 MiB: more than the largest repositories that people open whole."""

LIST_S = 20.0
"""How long git, or a walk, may take; 65,000 files take git 0.1 s, or seconds on a cold disk. Users wait less."""

OUTPUT_BYTES = 32 * 1024 * 1024
"""Most output that is read from git: `MAX_PATHS` paths of 160 bytes."""

PATH_BYTES = 1024
"""A longer path from the working directory is none that people refer to, but takes as long to compare as many."""

SKIPPED = frozenset(
    {"node_modules", "__pycache__", "venv", "env", "site-packages", "target", "build", "dist", "vendor"}
)
"""Directories that a walk does not enter: others have made what is in them. Hidden ones it does not enter either. In a
repository git knows which files are the user's own."""

SAFELY = (
    "--no-pager",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
)
"""A repository may come from anybody, and its configuration can name programs: none of them is started by looking."""

QUIETLY = {
    "GIT_OPTIONAL_LOCKS": "0",  # what is done in the terminal beside must not meet our lock
    "GIT_ALLOW_PROTOCOL": "",  # nothing is fetched, also not what a partial clone lacks
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


class FileListing(Struct, frozen=True):
    """The paths of a directory's files, relative to it, in no order; one with a slash at its end is a directory."""

    paths: Sequence[str]
    digest: bytes
    """Digest of git's answers, so that an unchanged listing need not be indexed again; empty after a walk."""
    is_cut: bool
    """There are more."""


async def listed(cwd: str, env: Mapping[str, str], known: bytes = b"") -> FileListing | None:
    """The files of a directory; None when git says what it said when the digest was `known`.

    `env` is of who asks; of it, what leads to git and to the user's own settings of git. Takes `LIST_S` twice at most.
    """
    found = await _by_git(cwd, env, known)
    if isinstance(found, Unusable):
        return await _by_walk(cwd)
    return found


# --- git ------------------------------------------------------------------------------------------------------


class Unusable:
    """git has nothing to say of a directory."""


class _Answer:
    """What a git command has printed, as far as it counts."""

    def __init__(self) -> None:
        self.chunks: list[bytes] = []
        self.size = 0
        self.is_cut = False

    def take(self, data: bytes) -> bool:
        """Keep a piece of it; False when it is too much."""
        self.size += len(data)
        self.is_cut = self.size > OUTPUT_BYTES
        if not self.is_cut:
            self.chunks.append(data)
        return not self.is_cut


async def _by_git(cwd: str, env: Mapping[str, str], known: bytes) -> FileListing | Unusable | None:
    # A relative entry would find a program `git` in the directory itself.
    path = os.pathsep.join(entry for entry in env.get("PATH", "").split(os.pathsep) if entry.startswith("/"))
    kept = {name: env[name] for name in ("HOME", "XDG_CONFIG_HOME") if name in env}
    try:
        async with asyncio.timeout(LIST_S):
            top, git = await in_thread(lambda _: (repository_of(Path(cwd)), shutil.which("git", path=path)))
            # Its configuration can name any other directory as the one that it is about.
            settled = {**kept, "PATH": path, **QUIETLY, "GIT_WORK_TREE": str(top)}
            answers = await _ask(git, cwd, settled) if git and top else None
            return await in_thread(lambda _: _read(*answers, known)) if answers else Unusable()
    except (TimeoutError, OSError, ValueError):  # the latter: a NUL in the client's environment
        return Unusable()


async def _ask(git: str, cwd: str, env: Mapping[str, str]) -> tuple[_Answer, _Answer] | None:
    """What git tracks, that of submodules too where it can; and what else there is, with what is no longer there."""
    command = [git, *SAFELY, "ls-files", "-z"]
    tracked = await _run([*command, "--cached", "--recurse-submodules"], cwd, env)
    tracked = tracked or await _run([*command, "--cached"], cwd, env)
    rest = await _run([*command, "-t", "--others", "--deleted", "--exclude-standard"], cwd, env) if tracked else None
    return (tracked, rest) if tracked and rest else None


async def _run(command: Sequence[str], cwd: str, env: Mapping[str, str]) -> _Answer | None:
    """What the command prints; None when it fails."""
    answer = _Answer()

    def on_output(data: bytes) -> None:
        if not answer.take(data):
            child.signal_group(signal.SIGKILL)

    child = spawn(command, cwd=cwd, env=env, on_output=on_output, stderr=subprocess.DEVNULL)
    async with child:
        code = await child.wait()
    return answer if code == 0 or answer.is_cut else None


def _read(tracked: _Answer, rest: _Answer, known: bytes) -> FileListing | None:
    digest = hashlib.blake2b(digest_size=16)
    for answer in (tracked, rest):
        for chunk in answer.chunks:
            digest.update(chunk)
        digest.update(b"\0\0")
    if digest.digest() == known:
        return None
    gone: set[bytes] = set()
    new: list[bytes] = []
    for line in _names(rest.chunks):
        if line.startswith(b"? "):
            new.append(line[2:])
        elif line.startswith(b"R "):
            gone.add(line[2:])
    found = _Found()
    found.take(name for name in _names(tracked.chunks) if name not in gone)
    found.take(new)
    return FileListing(found.paths, digest.digest(), found.is_cut or tracked.is_cut or rest.is_cut)


class _Found:
    """The paths that can be offered."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.is_cut = False

    def take(self, names: Iterable[bytes]) -> None:
        """Add those that are good for it; of a file with conflicts git gives several."""
        last = b""
        for name in names:
            if name == last:
                continue
            last = name
            if len(self.paths) == MAX_PATHS:
                self.is_cut = True
                return
            if (path := _path(name)) is not None:
                self.paths.append(path)


def _names(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """What stands between the NULs; the last one is not there, or was cut."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\0")
        yield from whole
        rest = rest[: PATH_BYTES + 3]  # a status, and more than fits: it is left out


def _path(name: bytes) -> str | None:
    """The path if it can be typed and lies in the directory: an index can be forged."""
    if not 0 < len(name) <= PATH_BYTES or b".." in name.split(b"/") or name.startswith(b"/"):
        return None
    path = os.fsdecode(name)
    return path if is_typed(path) else None


def is_typed(name: str) -> bool:
    """Whether a file of this name can be asked for in a prompt; others are left out."""
    return is_harmless(name)


# --- walk -----------------------------------------------------------------------------------------------------


async def _by_walk(cwd: str) -> FileListing:
    found = _Found()

    def walk(abandoned: threading.Event) -> bool:
        tree = DirectoryWalk(Path(cwd), hidden=False, abandoned=abandoned, max_entries=MAX_PATHS, skipped=SKIPPED)
        found.take(map(os.fsencode, tree))
        return tree.cut

    try:
        async with asyncio.timeout(LIST_S):
            is_cut = await in_thread(walk)
    except TimeoutError:
        is_cut = True
    return FileListing(list(found.paths), b"", is_cut or found.is_cut)
