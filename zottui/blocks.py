"""Finished pieces of a conversation: once one is printed, it is part of the terminal's scrollback and never changes.

A block says what happened; how it looks is decided by `zottui.render`, for the width and the theme of the moment.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UserSaid:
    """A prompt."""

    text: str
    images: int = 0
    sender: str = ""
    """Who sent it, when that was not this client."""


@dataclass(frozen=True, slots=True)
class Prose:
    """A top-level block of Markdown that is no fence: a paragraph, a heading, a list item, a table, a rule."""

    source: str
    """Markdown, without the blank lines around it."""
    tight: bool = False
    """No blank line before it: it goes on with the list of the block before."""


@dataclass(frozen=True, slots=True)
class CodeLines:
    """Lines of a fenced block; a long one comes in several pieces."""

    language: str
    """All that stands behind the mark that opens it; its first word is the language."""
    lines: tuple[str, ...]
    before: tuple[str, ...] = ()
    """Lines of the same fence that were printed already, for the highlighter; the first `markdown.CONTEXT_LINES`."""
    opens: bool = False
    """The first piece of its fence."""
    closes: bool = False
    """The last piece of its fence."""


@dataclass(frozen=True, slots=True)
class Thought:
    """The model has thought before it answered."""

    seconds: float
    text: str = ""
    """What it thought, when the user wants to see that."""


@dataclass(frozen=True, slots=True)
class ToolRan:
    """A tool call and its result."""

    name: str
    args: Mapping[str, object]
    result: str
    """All text of the result; the card shows its first lines."""
    is_error: bool = False
    is_open: bool = False
    """It has no result yet: it runs, or waits."""
    extension: str = ""
    """Whose tool it is; empty: built in."""
    seconds: float | None = None
    """How long it ran; None when nobody here has seen that."""
    images: int = 0
    number: int = 0
    """Counts the calls that were shown, so that the viewer can be told which."""


@dataclass(frozen=True, slots=True)
class NoteLine:
    """A line of ours, of the daemon or of an extension."""

    text: str
    level: str = "info"
    """`info`, `success`, `warn` or `error`."""
    source: str = ""
    """The extension it comes from."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A line across that says what is above it: earlier messages, a compaction, a rewind."""

    text: str


Block = UserSaid | Prose | CodeLines | Thought | ToolRan | NoteLine | Rule
