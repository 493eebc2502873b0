"""What the terminal client begins with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from zottui.theme import Theme


@dataclass(frozen=True, slots=True)
class Setup:
    """What the client begins with."""

    theme: Theme
    cwd: str
    """Until there is a session, which has its own."""
    env: Mapping[str, str]
    typed: bytes = b""
    """What was typed before the keyboard was ours."""
    is_vi: bool = False
    expect: Callable[[bool], None] = lambda _: None
    """Told whether the terminal owes an answer, for the end."""
