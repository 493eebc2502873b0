"""What the environment says about the terminal, before it is asked anything."""

from collections.abc import Mapping


def in_tmux(env: Mapping[str, str]) -> bool:
    """Whether tmux is between us and the terminal."""
    return bool(env.get("TMUX"))


def understands_osc(env: Mapping[str, str]) -> bool:
    """Whether it may be sent titles, links, notifications and questions; a console would show them."""
    return env.get("TERM", "") not in {"", "dumb", "linux", "unknown"}


def reflows(env: Mapping[str, str]) -> bool:
    """Whether it wraps its rows again when it becomes narrower: all do, except xterm, screen and the Linux console.

    An xterm at the other end of an ssh connection is not recognized.
    """
    if in_tmux(env):
        return True
    return "XTERM_VERSION" not in env and "STY" not in env and env.get("TERM") != "linux"
