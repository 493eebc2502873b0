"""Fetches a commit of a git repository without a working tree, so that git neither writes nor runs any of its files.

    git init --bare     with no template
    git fetch           one commit, no tags, no submodules
    git ls-tree         names, modes and sizes: checked before anything is written
    git cat-file        the contents unchanged: no filter, no LFS, no hook, no conversion of line ends

git reads only the configuration below and never asks for a password: private repositories need ssh with an agent. The
kernel limits the size of its output (`ulimit -f`); this module limits its time.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from zotd.exthost.installed import InstallError
from zotd.exthost.source import SCHEMES, Repository
from zotd.exthost.tree import EntryKind, TreeEntry, is_left_out
from zotd.process import spawn
from zotd.sanitize import escaped
from zotd.tree_digest import MAX_BYTES, MAX_ENTRIES

FETCH_S = 300.0
"""Time limit of the fetch: enough for the largest extension (`MAX_BYTES`) at 6 Mbit/s."""

LOCAL_S = 60.0
"""Time limit of a local command. The largest extension takes two seconds on a slow disk."""

OUTPUT_BYTES = MAX_BYTES + MAX_ENTRIES * 128
"""Longest file that git may write: all contents, with a line before each of them."""

LISTING_BYTES = MAX_ENTRIES * 512
"""Longest list of names. Trees that contain each other many times fit into a small pack and expand without end."""

ERROR_BYTES = 4096
"""How much of git's stderr is read."""

_CHUNK_BYTES = 1024 * 1024

_LIMITED = 'ulimit -f "$0" 2>/dev/null; exec git "$@" >output 2>errors'
"""Runs git with a limit for each file it writes. `output` and `errors` are in the clone's directory; the unit of `ulimit`
is 512 bytes (POSIX)."""

_CONFIG = {
    # Options that would run a program named by the repository or the user's configuration are disabled.
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.bigFileThreshold": "16m",  # larger files are not held in memory
    "credential.helper": "",
    "fetch.recurseSubmodules": "false",
    "fetch.unpackLimit": "1",  # always one pack: a limit for one file is then a limit for everything
    "gc.auto": "0",
    "maintenance.auto": "false",  # it would continue in the background
    # A server that sends less than 1,000 bytes a second for 30 s is given up before FETCH_S.
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "30",
}

_KEPT = (
    *("PATH", "HOME", "SSH_AUTH_SOCK", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
)
"""Variables that git inherits. Other `GIT_*` variables could name programs to run."""

_FIXED = {
    "GIT_ALLOW_PROTOCOL": ":".join(SCHEMES),  # also applies to redirects
    "GIT_ASKPASS": "",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
    "SSH_ASKPASS_REQUIRE": "never",
}

# Modes of git trees. 160000 is a submodule and is missing on purpose.
_KINDS = {"100644": EntryKind.FILE, "100664": EntryKind.FILE, "100755": EntryKind.PROGRAM, "120000": EntryKind.LINK}


class RepositoryTree(Struct, frozen=True):
    """The contents of a commit, as git lists them."""

    entries: Sequence[TreeEntry]
    """Names and sizes as listed; the caller has to check them."""
    submodules: Sequence[str]
    """Paths that are left out because their contents are in other repositories."""


class Clone:
    """One commit of a repository, in its own directory, which the caller creates and removes.

    All methods raise InstallError and may be cancelled, which ends git.
    """

    def __init__(self, directory: Path, env: Mapping[str, str]) -> None:
        """Use the empty `directory`; `env` is the environment of the client that installs."""
        self._directory = directory
        kept = {name: env[name] for name in _KEPT if name in env}
        self._env = kept | _FIXED | {"GIT_DIR": str(directory)}

    async def fetch(self, repository: Repository) -> str:
        """Fetch the commit that the repository's ref currently names; return its id."""
        await self._git("init", "--quiet", "--bare", "--template=")
        wanted = repository.ref or "HEAD"
        what = repository.ref or "its HEAD"
        # Only the commit itself: history, tags and submodules would add data that an extension does not need.
        options = ("--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules")
        await self._git("fetch", *options, "--", repository.location, wanted, within_s=FETCH_S, what=what)
        output = await self._git("rev-parse", "--verify", "FETCH_HEAD^{commit}", what=what)
        return output.read_text().strip()

    async def list(self, commit: str) -> RepositoryTree:
        """List names, modes and sizes of all files of the commit."""
        output = await self._git("ls-tree", "-r", "-l", "-z", commit, output_bytes=LISTING_BYTES)
        entries, submodules = [], []
        for line in output.read_bytes().split(b"\0")[:-1]:
            # With -z git does not quote names, so a name may contain any byte but NUL.
            about, _, name = line.partition(b"\t")
            mode, _, object_id, size = about.decode().split()
            path = os.fsdecode(name)
            if is_left_out(path):
                continue
            if mode in _KINDS:
                entries.append(TreeEntry(path, _KINDS[mode], int(size), object_id))
            else:
                submodules.append(path)
        return RepositoryTree(entries, submodules)

    async def unpack(self, entries: Sequence[TreeEntry]) -> None:
        """Extract the contents of these entries for `read`."""
        # Ids go through a file: twenty thousand of them do not fit on a command line, and a pipe could deadlock.
        wanted = self._directory / "wanted"
        wanted.write_text("".join(f"{entry.object_id}\n" for entry in entries))
        with wanted.open("rb") as stdin:
            await self._git("cat-file", "--batch", "--buffer", stdin=stdin.fileno())

    def read(self, entries: Sequence[TreeEntry]) -> Iterator[tuple[TreeEntry, Iterable[bytes]]]:
        """Yield the unpacked entries with their contents, in the same order. Read each before the next one. Blocks."""
        with (self._directory / "output").open("rb") as output:
            for entry in entries:
                if output.readline() != f"{entry.object_id} blob {entry.size}\n".encode():
                    raise InstallError("git did not deliver the contents that it had listed")
                yield entry, _chunks(output, entry.size)
                output.readline()

    async def _git(
        self,
        *args: str,
        within_s: float = LOCAL_S,
        output_bytes: int = OUTPUT_BYTES,
        stdin: int = subprocess.DEVNULL,
        what: str = "the files",
    ) -> Path:
        """Run git and return the file with its output. `what` names the wanted object in error messages."""
        config = [word for name, value in _CONFIG.items() for word in ("-c", f"{name}={value}")]
        argv = ["/bin/sh", "-c", _LIMITED, str(output_bytes // 512), *config, *args]
        child = spawn(argv, cwd=str(self._directory), env=self._env, on_output=lambda _: None, stdin=stdin)
        try:
            async with asyncio.timeout(within_s), child:  # leaving the block ends git if it still runs
                code = await child.wait()
        except TimeoutError as error:
            raise InstallError(f"getting {what} took longer than {within_s:g} s") from error
        if code != 0:
            raise self._failure(code, what)
        return self._directory / "output"

    def _failure(self, code: int, what: str) -> InstallError:
        with (self._directory / "errors").open("rb") as file:
            said = file.read(ERROR_BYTES).decode(errors="replace")
        if code == 127:
            return InstallError("git cannot be started; install it, or add it to PATH")
        # git itself or one of its children was stopped by `ulimit -f`.
        if code == -signal.SIGXFSZ or f"died of signal {int(signal.SIGXFSZ)}" in said:
            return InstallError(
                f"it has more than {MAX_BYTES >> 20} MiB or {MAX_ENTRIES} files, too much for an extension"
            )
        # The server's output comes before git's reason and hints come after it; only the reason is shown.
        lines = [line for line in said.splitlines() if line.startswith("fatal: ")] or said.splitlines()
        reason = escaped(lines[0][:300]) if lines else f"exit code {code}"
        return InstallError(f"git could not get {what}: {reason}")


def _chunks(file: BinaryIO, size: int) -> Iterator[bytes]:
    while size > 0 and (chunk := file.read(min(size, _CHUNK_BYTES))):
        size -= len(chunk)
        yield chunk
