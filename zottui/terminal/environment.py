"""Capabilities of the terminal as far as environment variables tell them."""

from collections.abc import Mapping


def in_tmux(env: Mapping[str, str]) -> bool:
    """Return whether the client runs in tmux."""
    return bool(env.get("TMUX"))


def understands_osc(env: Mapping[str, str]) -> bool:
    """Return whether the terminal accepts titles, links, notifications and queries; a console would print them."""
    return env.get("TERM", "") not in {"", "dumb", "linux", "unknown"}


def reflows(env: Mapping[str, str]) -> bool:
    """Return whether the terminal rewraps its rows when it becomes narrower. All do but xterm, screen and the console.

    An xterm at the other end of an ssh connection is not recognized.
    """
    if in_tmux(env):
        return True
    return "XTERM_VERSION" not in env and "STY" not in env and env.get("TERM") != "linux"
