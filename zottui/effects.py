"""Side effects that the reducer requests. They happen once, unlike the state, which is drawn again and again."""

from dataclasses import dataclass

from zottui.blocks import Block


@dataclass(frozen=True, slots=True)
class Print:
    """Print these blocks into the scrollback."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class InsertText:
    """Put the text of an extension into the editor."""

    text: str


@dataclass(frozen=True, slots=True)
class Alert:
    """Notify the user. The daemon has chosen this client because no client has the focus."""

    reason: str
    """`done`, `needs_you` or `failed`."""
    text: str


Effect = Print | InsertText | Alert
