"""A git repository without a working tree: nothing in it can run, for git never writes one of its files.

    git init --bare     with no template
    git fetch           one commit, no tags, no submodules
    git ls-tree         names, modes and sizes: judged before anything is written
    git cat-file        the contents as they are: no filter, no LFS, no hook, no conversion of line ends

No configuration is read but what stands here, and nobody is asked for a password: private repositories are for ssh with
an agent. What git writes is bounded by the kernel (`ulimit -f`), how long it takes by us.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from zotd.exthost.installed import InstallError
from zotd.exthost.source import SCHEMES, Repository
from zotd.exthost.tree import EntryKind, TreeEntry, is_left_out
from zotd.process import spawn
from zotd.sanitize import escaped
from zotd.tree_digest import MAX_BYTES, MAX_ENTRIES

FETCH_S = 300.0
"""The largest extension (`MAX_BYTES`) at 6 Mbit/s."""

LOCAL_S = 60.0
"""Listing and unpacking what was fetched: two seconds for the largest extension on a slow disk."""

OUTPUT_BYTES = MAX_BYTES + MAX_ENTRIES * 128
"""Longest file that git may write: all contents, with a line before each of them."""

LISTING_BYTES = MAX_ENTRIES * 512
"""Longest list of names. Trees that contain each other many times fit into a small pack and expand without end."""

ERROR_BYTES = 4096
"""What is read of its complaints."""

_CHUNK_BYTES = 1024 * 1024

_LIMITED = 'ulimit -f "$0" 2>/dev/null; exec git "$@" >output 2>errors'
"""Files of the clone's own directory; the unit of `ulimit` has 512 bytes (POSIX)."""

_CONFIG = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.bigFileThreshold": "16m",  # larger ones are not held in memory
    "credential.helper": "",
    "fetch.recurseSubmodules": "false",
    "fetch.unpackLimit": "1",  # always one pack: a limit for one file is then a limit for everything
    "gc.auto": "0",
    "maintenance.auto": "false",  # it would go on in the background
    "http.lowSpeedLimit": "1000",
    "http.lowSpeedTime": "30",
}

_KEPT = (
    *("PATH", "HOME", "SSH_AUTH_SOCK", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
)
"""What git gets of the environment; other `GIT_*` variables could name programs to run."""

_FIXED = {
    "GIT_ALLOW_PROTOCOL": ":".join(SCHEMES),  # for redirects, too
    "GIT_ASKPASS": "",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
    "SSH_ASKPASS_REQUIRE": "never",
}

_KINDS = {"100644": EntryKind.FILE, "100664": EntryKind.FILE, "100755": EntryKind.PROGRAM, "120000": EntryKind.LINK}


@dataclass(frozen=True, slots=True)
class RepositoryTree:
    """What is in a commit."""

    entries: Sequence[TreeEntry]
    """Not judged."""
    submodules: Sequence[str]
    """Paths of what is left out because it is in other repositories."""


class Clone:
    """One commit of a repository, in a directory of its own that the caller makes and removes.

    Methods may be cancelled; git is then ended. They raise InstallError.
    """

    def __init__(self, directory: Path, env: Mapping[str, str]) -> None:
        """An empty directory; `env` is that of whoever installs."""
        self._directory = directory
        kept = {name: env[name] for name in _KEPT if name in env}
        self._env = kept | _FIXED | {"GIT_DIR": str(directory)}

    async def fetch(self, repository: Repository) -> str:
        """Get the commit that the repository's ref means now; its id."""
        await self._git("init", "--quiet", "--bare", "--template=")
        wanted = repository.ref or "HEAD"
        what = repository.ref or "its HEAD"
        options = ("--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules")
        await self._git("fetch", *options, "--", repository.location, wanted, within_s=FETCH_S, what=what)
        output = await self._git("rev-parse", "--verify", "FETCH_HEAD^{commit}", what=what)
        return output.read_text().strip()

    async def list(self, commit: str) -> RepositoryTree:
        """Names, modes and sizes of everything in the commit."""
        output = await self._git("ls-tree", "-r", "-l", "-z", commit, output_bytes=LISTING_BYTES)
        entries, submodules = [], []
        for line in output.read_bytes().split(b"\0")[:-1]:
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
        """Get the contents ready for `read`."""
        wanted = self._directory / "wanted"
        wanted.write_text("".join(f"{entry.object_id}\n" for entry in entries))
        with wanted.open("rb") as stdin:
            await self._git("cat-file", "--batch", "--buffer", stdin=stdin.fileno())

    def read(self, entries: Sequence[TreeEntry]) -> Iterator[tuple[TreeEntry, Iterable[bytes]]]:
        """The contents of what was unpacked, in the same order; each is to be read before the next one. Blocks."""
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
        """Run git; the file with what it printed. `what` it should get is for the message."""
        config = [word for name, value in _CONFIG.items() for word in ("-c", f"{name}={value}")]
        argv = ["/bin/sh", "-c", _LIMITED, str(output_bytes // 512), *config, *args]
        child = spawn(argv, cwd=str(self._directory), env=self._env, on_output=lambda _: None, stdin=stdin)
        try:
            async with asyncio.timeout(within_s), child:  # ends with its exit, or is ended
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
        if code == -signal.SIGXFSZ or f"died of signal {int(signal.SIGXFSZ)}" in said:
            return InstallError(
                f"it has more than {MAX_BYTES >> 20} MiB or {MAX_ENTRIES} files, too much for an extension"
            )
        # Hints come after the reason, and what the server has said before it.
        lines = [line for line in said.splitlines() if line.startswith("fatal: ")] or said.splitlines()
        reason = escaped(lines[0][:300]) if lines else f"exit code {code}"
        return InstallError(f"git could not get {what}: {reason}")


def _chunks(file: BinaryIO, size: int) -> Iterator[bytes]:
    while size > 0 and (chunk := file.read(min(size, _CHUNK_BYTES))):
        size -= len(chunk)
        yield chunk
