"""Finished parts of a conversation. A printed block is in the terminal's scrollback and cannot change any more.

A block holds content only. `zottui.render` decides how it looks, for the current width and theme.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UserSaid:
    """A prompt of a user."""

    text: str
    images: int = 0
    sender: str = ""
    """Name of the other client that sent it; empty: this client."""


@dataclass(frozen=True, slots=True)
class Prose:
    """A top-level block of Markdown other than fenced code: a paragraph, a heading, a list item, a table, a rule."""

    source: str
    """Markdown, without leading and trailing blank lines."""
    tight: bool = False
    """Print no blank line before it: it continues the list of the previous block."""


@dataclass(frozen=True, slots=True)
class CodeLines:
    """Lines of a fenced code block. They are printed as they arrive, so one fence may be several of these."""

    language: str
    """The fence's info string; its first word is the language."""
    lines: tuple[str, ...]
    before: tuple[str, ...] = ()
    """Earlier lines of the same fence, for the highlighter; at most the first `markdown.CONTEXT_LINES`."""
    opens: bool = False
    """Whether it is the first part of its fence."""
    closes: bool = False
    """Whether it is the last part of its fence."""


@dataclass(frozen=True, slots=True)
class Thought:
    """The model's thinking before a reply."""

    seconds: float
    text: str = ""
    """Its text; empty unless `/thinking show` is on."""


@dataclass(frozen=True, slots=True)
class ToolRan:
    """A tool call with its result."""

    name: str
    args: Mapping[str, object]
    result: str
    """The whole text of the result; the card shows some of its lines."""
    is_error: bool = False
    is_open: bool = False
    """It has no result yet."""
    extension: str = ""
    """The extension that provides the tool; empty: built in."""
    seconds: float | None = None
    """How long it ran; None if this client has not seen its start."""
    images: int = 0
    number: int = 0
    """Number of the call among those that were printed; the viewer finds the call by it."""


@dataclass(frozen=True, slots=True)
class NoteLine:
    """A message of the client, the daemon or an extension."""

    text: str
    level: str = "info"
    """`info`, `success`, `warn` or `error`."""
    source: str = ""
    """The extension that sent it; empty: the client or the daemon."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A separator line with a text: earlier messages, a compaction, a rewind."""

    text: str


# A new kind of block needs a case in `zottui.render`; mypy checks that none is missing.
Block = UserSaid | Prose | CodeLines | Thought | ToolRan | NoteLine | Rule
