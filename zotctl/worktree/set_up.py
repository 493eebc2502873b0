"""Prepares a new worktree: copies ignored files into it, then runs the set-up command once.

The command is the setting `worktree.setup`. That of the project's `.zot/config.toml` is used instead of the user's own if
the user trusts the main worktree as it is now.
"""

import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from zotctl.worktree.inclusion import include
from zotctl.worktree.trusting import is_trusted
from zotd import config, paths
from zotd.client.environment import shared
from zotd.client.errors import ClientError
from zotd.sanitize import harmless

PROJECT = os.path.join(".zot", "config.toml")
"""The project's configuration, relative to its root."""

PROJECT_BYTES = 256 * 1024
"""Most bytes of it."""

MAIN = "ZOT_MAIN_WORKTREE"
"""Variable that names the main worktree to the set-up command, which runs in the new one."""

END_S = 5.0
"""How long the command may take to end after SIGTERM, in seconds; then it is killed."""


class SetUpError(ClientError):
    """The worktree was created, and its preparation failed; the message says what to do."""


def set_up(name: str, path: str, main: str, env: Mapping[str, str]) -> None:
    """Prepare the new worktree `name` at `path` of the repository whose main worktree is `main`.

    Progress and the output of the command go to standard error.

    Raises:
        SetUpError: a file could not be copied, or the command failed. The worktree stays.
    """
    try:
        file = Path(paths.zot_home(env), "config.toml")
        own = config.load(file, env).config.worktree
        include(main, path, own.include, _tell)
        command = _of_project(main, file) or own.setup
    except (ClientError, config.ConfigError) as error:
        raise SetUpError(_advice(str(error), name)) from error
    if command is None:
        return
    _tell(f"setting up {name}: {shlex.join(command)}")
    begun = time.monotonic()
    trouble = _run(command, path, {**shared(env), MAIN: main}, own.setup_timeout_s)
    if trouble:
        again = f"cd {shlex.quote(path)} && {shlex.join(command)}"
        raise SetUpError(_advice(f"the set-up command {trouble}; to repeat it: {again}", name))
    _tell(f"{name} was set up in {time.monotonic() - begun:.0f} s")


def _of_project(main: str, own: Path) -> Sequence[str] | None:
    """Return the project's set-up command, if it has one that may run; `own` is the user's configuration."""
    path = os.path.join(main, PROJECT)
    content = _content(path)
    if content is None or os.path.realpath(path) == os.path.realpath(own):
        return None
    command = config.parse(content.decode(errors="replace"), Path(path)).config.worktree.setup
    if command is None:
        return None
    # Read again behind the question: trust is in the files as they are when the daemon looks.
    if is_trusted(main) and _content(path) == content:
        return command
    _tell(
        f"the project's own set-up command is not run, because {main} is not trusted: {shlex.join(command)}; "
        f"to trust it from now on: zotctl trust grant {shlex.quote(main)}"
    )
    return None


def _content(path: str) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # it may be a FIFO
        with os.fdopen(descriptor, "rb") as file:
            content = file.read(PROJECT_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ClientError(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > PROJECT_BYTES:
        raise ClientError(f"{path} has more than {PROJECT_BYTES >> 10} KiB")
    return content


def _run(command: Sequence[str], path: str, env: Mapping[str, str], limit_s: float) -> str:
    """Run the command in the worktree; return what went wrong, as the end of a sentence, or an empty text."""
    sys.stderr.flush()
    try:
        process = subprocess.Popen(  # noqa: S603  (a list, no shell)
            command, cwd=path, env=env, stdin=subprocess.DEVNULL, stdout=2, stderr=2, process_group=0
        )
    except OSError as error:
        return f"cannot be started: {error.strerror or error}"
    with process:
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            _end(process)
            return f"took longer than {limit_s:g} s (worktree.setup_timeout_s) and was stopped"
        except KeyboardInterrupt:
            _end(process)
            return "was interrupted"
        except BaseException:
            _end(process)
            raise
    if code == 0:
        return ""
    return f"failed with exit code {code}" if code > 0 else f"was ended by signal {-code}"


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End the command with everything in its process group."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_S)
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _advice(trouble: str, name: str) -> str:
    quoted = shlex.quote(name)
    return (
        f"the worktree {name} was created, but {trouble}; to use it as it is: zot -w {quoted}; "
        f"to discard it: zotctl worktree remove --force {quoted}"
    )


def _tell(sentence: str) -> None:
    sys.stderr.write(f"{harmless(sentence)}\n")
    sys.stderr.flush()
