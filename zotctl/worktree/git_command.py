"""Runs the user's own git, each command for at most `GIT_S`."""

import os
import subprocess
from collections.abc import Mapping

from zotd.client.errors import ClientError

GIT_S = 120.0
"""Time limit of one git command, in seconds: a checkout of a large repository takes tens of seconds."""

END_S = 5.0
"""How long a git that took too long may take to remove its lock files, in seconds."""

OWN = ("fatal: ", "error: ")
"""How the lines begin in which git says what is wrong."""

HOOK_REFUSED = "Not committing merge"
"""What git says after a hook has refused a merge; it then advises to complete it."""

OF_A_HOOK = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX")
"""Variables with which a hook of git names its own repository; they would override the directory."""


class GitError(ClientError):
    """A git command failed; the message is git's own sentence."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint
        """The last line that is not git's own, so mostly that of a hook; empty if there is none."""


def git(cwd: str, *args: str, variables: Mapping[str, str] | None = None, piped: str | None = None) -> str:
    """Return what git prints; `piped` is its standard input.

    Raises:
        GitError: git failed or took longer than `GIT_S`.
        ClientError: there is no git.
    """
    done = _run(cwd, args, variables or {}, piped)
    if done.returncode:
        reason = _reason(done.stderr) or _reason(done.stdout) or f"exit code {done.returncode}"
        raise GitError(f"git {args[0]}: {reason}", _hint(done.stderr))
    return done.stdout.decode(errors="surrogateescape")


def git_succeeds(cwd: str, *args: str) -> bool:
    """Return whether git exits with 0; raises what `git` raises if it takes too long or is missing."""
    return _run(cwd, args, {}, None).returncode == 0


def _run(
    cwd: str, args: tuple[str, ...], variables: Mapping[str, str], piped: str | None
) -> "subprocess.CompletedProcess[bytes]":
    kept = {name: value for name, value in os.environ.items() if name not in OF_A_HOOK}
    command, env = ["git", *args], {**kept, "LC_ALL": "C", **variables}
    given = b"" if piped is None else piped.encode(errors="surrogateescape")
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(command, cwd=cwd, env=env, stdin=pipe, stdout=pipe, stderr=pipe)  # noqa: S603
    except FileNotFoundError as error:
        if not os.path.isdir(cwd):
            raise ClientError(f"there is no directory {cwd}") from error
        raise ClientError("git was not found on PATH; worktrees need it") from error
    except OSError as error:
        raise ClientError(f"git cannot be run in {cwd}: {error.strerror}") from error
    with process:
        try:
            out, err = process.communicate(given, GIT_S)
        except subprocess.TimeoutExpired as error:
            _end(process)
            raise GitError(f"git {args[0]} took longer than {GIT_S:.0f} s and was stopped") from error
        except BaseException:
            _end(process)
            raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End git in a way in which it removes its lock files."""
    process.terminate()
    try:
        process.communicate(timeout=END_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def _reason(output: bytes) -> str:
    """Return the line that says what is wrong, with the files that it announces; hooks and filters print others."""
    lines = output.decode(errors="replace").splitlines()
    number = next((number for number, line in enumerate(lines) if line.startswith(OWN)), None)
    if number is None:
        return next((line.strip() for line in reversed(lines) if line.strip()), "")
    reason = lines[number].partition(": ")[2]
    if not reason.endswith(":"):
        return reason
    listed: list[str] = []
    for line in lines[number + 1 :]:
        if not line.startswith("\t"):
            break
        listed.append(line.strip())
    return f"{reason} {', '.join(listed)}"


def _hint(output: bytes) -> str:
    lines = (line.strip() for line in output.decode(errors="replace").splitlines())
    return next(
        (line for line in reversed(list(lines)) if line and not line.startswith((*OWN, HOOK_REFUSED, "hint: "))), ""
    )
