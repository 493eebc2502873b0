"""Runs the service manager's own program."""

import subprocess

from zotd.client.errors import ClientError

ANSWER_S = 100.0
"""Longest wait: a restart waits for the daemon's drain, which systemd ends after 90 s."""


def run(*command: str) -> tuple[int, str]:
    """Its exit code, and what it printed, of which standard error counts only when there is nothing else.

    Raises:
        ClientError: it does not run, or does not answer.
    """
    try:
        # The whole environment: XDG_RUNTIME_DIR and the bus address say which manager is meant.
        done = subprocess.run(  # noqa: S603  (the program of the service manager, with words of ours)
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
    """Have it do something; raises ClientError with its own words when it has not."""
    code, said = run(*command)
    if code != 0:
        reason = said.replace("\n", "; ") or f"exit code {code}"
        raise ClientError(f"`{' '.join(command)}` failed: {reason}")
