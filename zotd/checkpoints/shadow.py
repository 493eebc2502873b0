"""The shadow repository of a workspace: a git directory outside of it, whose working tree is the workspace.

Its git reads no configuration of the user, the system or the workspace, runs no hooks and no filters, and never looks
into the user's own repository. So nothing in a workspace can start a program, and files are recorded byte by byte.
"""

import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

from zotd.checkpoints.errors import AbandonedError, CheckpointError, UnrecordableError

GIT_S = 600.0
"""Time limit of one git command, in seconds: the first recording of 500,000 files takes minutes on a slow disk."""

POLL_S = 0.1
"""How often a waiting thread looks whether its caller still waits, in seconds."""

OLDEST = (2, 32)
"""Oldest version of git that works: it ignores configuration (`GIT_CONFIG_GLOBAL`) and repacks by `--geometric`."""

BULK_VERSION = (2, 37)
"""First version whose `update-index` can write new objects into one pack."""

REF = "refs/heads/checkpoints"

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""Object name of the tree without entries; git knows it without having it."""

FORMAT = "2"
"""Written to the file `zot-format` when the repository is complete. One of an earlier format gets the configuration of now."""

FATAL = "fatal: "

NO_CONNECTION = "fatal: Could not read from remote repository."
"""What git says if ssh has failed, which has said why."""

REJECTED = "! [remote rejected]"
"""What `git push` says of a reference that the other side has refused, and why."""

ATTRIBUTES = "* -text -eol -filter -ident -working-tree-encoding !diff\n"
"""Outranks each `.gitattributes` of the workspace: nothing is converted."""

CONFIG = """\
[core]
\trepositoryformatversion = 0
\tbare = false
\tfilemode = true
\tsymlinks = true
\tignorecase = {ignores_case}
\tprecomposeunicode = {is_mac}
\tlogallrefupdates = false
\tautocrlf = false
\tsafecrlf = false
\tfsmonitor = false
\thooksPath = /dev/null
\texcludesFile = /dev/null
\tattributesFile = /dev/null
\tuntrackedCache = false
\tpreloadIndex = true
\tquotePath = false
\tprotectNTFS = false
\tlooseCompression = 1
\tfsync = none
[index]
\tversion = 4
\tthreads = true
\tskipHash = true
[status]
\tshowUntrackedFiles = all
\trenames = false
\trelativePaths = false
[diff]
\trenames = false
[gc]
\tauto = 0
[maintenance]
\tauto = false
[user]
\tname = zot
\temail = zot@localhost
"""


@dataclass(frozen=True, slots=True)
class Program:
    """The git program that is used."""

    path: str
    version: tuple[int, ...]
    search_path: str
    """`PATH` for it: absolute directories only, since a relative one would be looked for in the workspace."""


def find_program(env: Mapping[str, str]) -> Program:
    """Return the git of this environment. Raises UnrecordableError if there is none, or an old one."""
    search_path = os.pathsep.join(entry for entry in env.get("PATH", "").split(os.pathsep) if entry.startswith("/"))
    import shutil  # noqa: PLC0415  (3 ms, only when a workspace is opened)

    path = shutil.which("git", path=search_path)
    if path is None:
        raise UnrecordableError("git was not found on PATH; install it to get checkpoints")
    return Program(path, _version(path, os.stat(path).st_mtime_ns), search_path)


@lru_cache(maxsize=8)
def _version(path: str, mtime_ns: int) -> tuple[int, ...]:
    """Return the version of the git at `path`, which is asked anew when the file has changed; raises UnrecordableError."""
    del mtime_ns
    try:
        done = subprocess.run(  # noqa: S603  (a list, no shell)
            [path, "version"],
            env={"LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_S,
            check=True,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise UnrecordableError(f"{path} cannot be run: {error}") from error
    numbers = re.search(rb"(\d+)\.(\d+)", done.stdout)
    version = (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
    if version < OLDEST:
        shown = done.stdout.decode(errors="replace").strip()
        raise UnrecordableError(f"{shown} is too old for checkpoints; install {OLDEST[0]}.{OLDEST[1]} or newer")
    return version


class ShadowRepository:
    """Runs git for one operation on the checkpoints of a workspace."""

    def __init__(self, folder: str, workspace: str, program: Program, abandoned: threading.Event) -> None:
        """`abandoned` is set when the caller does not wait any more; git is then killed."""
        self.folder = folder
        self.workspace = workspace
        self.program = program
        self._abandoned = abandoned
        self._env = {
            "GIT_DIR": folder,
            "GIT_WORK_TREE": workspace,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": "",
            "HOME": folder,
            "LC_ALL": "C",
            "PATH": program.search_path,
        }

    def create(self) -> None:
        """Make the repository if it is missing or incomplete; quick if it is there."""
        with suppress(FileNotFoundError), open(os.path.join(self.folder, "zot-format"), encoding="ascii") as file:
            if file.read() == FORMAT:
                return
        self.run("init", "--quiet", "--template=", f"--initial-branch={REF.rpartition('/')[2]}", "--object-format=sha1")
        for name in ("info", "left-out"):
            os.makedirs(os.path.join(self.folder, name), exist_ok=True)
        ignores_case = _ignores_case(self.workspace)
        is_mac = os.uname().sysname == "Darwin"
        config = CONFIG.format(ignores_case=str(ignores_case).lower(), is_mac=str(is_mac).lower())
        self.write("config", config)
        self.write(os.path.join("info", "attributes"), ATTRIBUTES)
        self.write("workspace", f"{self.workspace}\n")
        self.write("zot-format", FORMAT)

    def write(self, name: str, content: str) -> None:
        """Replace a file of the repository as a whole."""
        place = os.path.join(self.folder, name)
        draft = f"{place}.draft"
        with open(draft, "wb") as file:
            file.write(content.encode(errors="surrogateescape"))
        os.replace(draft, place)

    def remove_stale_lock(self) -> None:
        """Remove the index's lock that a killed git has left; call it only under the lock of the workspace."""
        for name in ("index.lock", f"{REF}.lock", "HEAD.lock", "shallow.lock"):
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(self.folder, name))

    def run(
        self, *args: str, stdin: bytes = b"", variables: Mapping[str, str] | None = None, no_error: int = 0
    ) -> bytes:
        """Return what a git command prints; `no_error` is an exit code that means no error.

        Raises:
            CheckpointError: it failed, with git's last line.
            AbandonedError: it took longer than `GIT_S`, or the caller does not wait any more.
        """
        return self.end(self.begin(*args, stdin=stdin, variables=variables), no_error)

    def begin(
        self, *args: str, stdin: bytes = b"", variables: Mapping[str, str] | None = None
    ) -> "subprocess.Popen[bytes]":
        """Start a git command, to be ended by `end`."""
        try:
            # A file, because `communicate` with a time limit cannot be called again while it still writes.
            with tempfile.TemporaryFile() as given:
                given.write(stdin)
                given.seek(0)
                return subprocess.Popen(  # noqa: S603  (a list, no shell)
                    [self.program.path, *args],
                    cwd=self.workspace,
                    env={**self._env, **(variables or {})},
                    stdin=given if stdin else subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    process_group=0,  # not a session: `process.exit` would take it for an orphan, and reap it
                )
        except OSError as error:
            raise CheckpointError(f"git cannot be run in {self.workspace}: {error.strerror}") from error

    def end(self, process: "subprocess.Popen[bytes]", no_error: int = 0) -> bytes:
        """Wait for the end of a command, and return its output; raises as `run` does."""
        printed, complaints = self._communicate(process)
        if process.returncode not in {0, no_error}:
            lines = complaints.decode(errors="replace").strip().splitlines() or [f"exit code {process.returncode}"]
            command = str(process.args[1]) if isinstance(process.args, Sequence) else "git"
            raise CheckpointError(f"git {command}: {_complaint(lines)}")
        return printed

    def _communicate(self, process: "subprocess.Popen[bytes]") -> tuple[bytes, bytes]:
        give_up = time.monotonic() + GIT_S
        try:
            while True:
                with suppress(subprocess.TimeoutExpired):
                    return process.communicate(timeout=POLL_S)
                self._check_patience(give_up)
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with its ssh, which would keep the pipes open
            process.communicate()
            raise

    def _check_patience(self, give_up: float) -> None:
        if self._abandoned.is_set():
            raise AbandonedError("the checkpoint was given up, because its caller stopped waiting")
        if time.monotonic() > give_up:
            raise AbandonedError(f"git took longer than {GIT_S:g} s in {self.workspace} and was stopped")


def _complaint(lines: Sequence[str]) -> str:
    """Return the line that says why git has failed; it may be followed by advice."""
    for number, line in enumerate(lines):
        if line.lstrip().startswith(REJECTED):
            return line.strip().removeprefix("! ")
        if line.startswith(FATAL):
            told_by_ssh = lines[number - 1].strip() if number and line == NO_CONNECTION else ""
            return told_by_ssh or line.removeprefix(FATAL)
    return lines[-1]


def _ignores_case(workspace: str) -> bool:
    """Return whether the file system of the workspace does not distinguish upper and lower case."""
    other = workspace.swapcase()
    try:
        return other != workspace and os.path.samefile(workspace, other)
    except OSError:
        return False
