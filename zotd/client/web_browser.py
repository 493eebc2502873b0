"""Opens a page in the browser of the user who sits here."""

import subprocess
import sys
from collections.abc import Mapping

OPEN_S = 10.0
"""Longest wait for a browser to start."""


def is_here(env: Mapping[str, str]) -> bool:
    """Whether a browser that is opened here is one that the user sees: not over ssh, not without a screen."""
    if env.get("BROWSER"):
        return True
    if env.get("SSH_CONNECTION") or env.get("SSH_TTY"):
        return False
    return sys.platform == "darwin" or bool(env.get("DISPLAY") or env.get("WAYLAND_DISPLAY"))


def open_page(url: str, env: Mapping[str, str]) -> None:
    """Open `url`, which is an http(s) address. Blocks until the browser was started; that it was not is no error.

    In a process of its own: browsers write to the terminal.
    """
    quiet = subprocess.DEVNULL
    argv = [sys.executable, "-m", "webbrowser", "--", url]
    try:
        subprocess.run(argv, env=env, stdin=quiet, stdout=quiet, stderr=quiet, timeout=OPEN_S, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return
