"""`make demo`: an agent session in a real daemon, on a small model inside this machine. No key, no network.

Runs the commands that a person would type, in a home of its own that is gone afterwards: a prompt whose answer only a
tool can find, then away and back, then a restart of the daemon. Exit code 1, and a sentence why, when the model's answer
or the session that came back does not contain the word that this run has written into the file.
"""

import json
import os
import secrets
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

PROMPT = "Read the file secret.txt"

# None of them is in the example calls that the small model gets to see.
WORDS = """anchor basket candle dragon eagle falcon garden hammer island jungle kettle ladder magnet needle orange
pepper quartz ribbon saddle temple umbrella velvet window yellow zebra bottle castle desert engine forest""".split()

BIN = Path(sys.executable).parent

STEP_S = 120.0
"""Longest wait for one command: loading the model takes 5 s on a cold disk, its answer 2 s on two idle cores."""

IS_TERMINAL = sys.stdout.isatty()


class DemoFailedError(Exception):
    """What was promised did not happen; the message says what."""


def main() -> int:
    """Run the demo; the exit code."""
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="zot-demo-", ignore_cleanup_errors=True) as folder:
        project = Path(folder, "project")
        project.mkdir()
        shell = Shell(Path(folder, "home"), project)
        try:
            demo(shell, project)
        except (DemoFailedError, subprocess.SubprocessError) as error:
            say(f"\nDEMO FAILED: {error}", RED)
            return 1
        finally:
            shell.run("zotctl", "stop")
    say(f"\nIt works. {time.monotonic() - started:.0f} s, no key, no network.", GREEN)
    return 0
