"""Runs `systemctl` or `launchctl`."""

import subprocess

from zotd.client.errors import ClientError

ANSWER_S = 100.0
"""Time limit in seconds. A restart waits for the daemon to drain, which systemd limits to 90 s."""


def run(*command: str) -> tuple[int, str]:
    """Run a command and return its exit code and its standard output, or standard error if that is empty.

    Raises:
        ClientError: the command could not be run, or exceeded `ANSWER_S`.
    """
    try:
        # Inherits the environment: XDG_RUNTIME_DIR and the bus address select the manager.
        done = subprocess.run(  # noqa: S603  (a fixed program with our own arguments)
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=ANSWER_S,
            text=True,
            errors="replace",
        )
    except subprocess.TimeoutExpired as error:
        raise ClientError(f"`{' '.join(command)}` did not answer within {ANSWER_S:g} s") from error
    except OSError as error:
        raise ClientError(f"cannot run `{command[0]}`: {error.strerror}") from error
    return done.returncode, (done.stdout.strip() or done.stderr.strip())


def run_checked(*command: str) -> None:
    """Run a command; raises `ClientError` with its output if it fails."""
    code, said = run(*command)
    if code != 0:
        reason = said.replace("\n", "; ") or f"exit code {code}"
        raise ClientError(f"`{' '.join(command)}` failed: {reason}")
