"""What leaves the reducer: things that are done once, and not states that are shown."""

from dataclasses import dataclass

from zottui.blocks import Block


@dataclass(frozen=True, slots=True)
class Print:
    """Put these into the scrollback."""

    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class InsertText:
    """Put this into the editor: an extension was asked for it here."""

    text: str


@dataclass(frozen=True, slots=True)
class Alert:
    """Tell the user, who looks elsewhere; the daemon has chosen this client."""

    reason: str
    """`done`, `needs_you` or `failed`."""
    text: str


Effect = Print | InsertText | Alert
