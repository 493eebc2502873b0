"""The parameters of the terminal client."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from zottui.theme import Theme


@dataclass(frozen=True, slots=True)
class Setup:
    """The parameters of `App`, which `zottui.inline` gathers."""

    theme: Theme
    cwd: str
    """The directory until a session is attached, which has its own."""
    env: Mapping[str, str]
    typed: bytes = b""
    """Input that was read before prompt_toolkit took over the keyboard."""
    is_vi: bool = False
    expect: Callable[[bool], None] = lambda _: None
    """Called with whether an answer of the terminal is pending; `zottui.inline` waits for it at exit."""
