"""Themes: colours by the role of a text. The default theme needs 16 colours; `NO_COLOR` switches colours off."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

RESET = "\x1b[m"


class TextRole(StrEnum):
    """The role of a text; its value is also the style class for prompt_toolkit."""

    TEXT = "text"
    MUTED = "muted"
    ACCENT = "accent"
    HEADING = "heading"
    STRONG = "strong"
    EMPHASIS = "emphasis"
    STRUCK = "struck"
    CODE = "code"
    LINK = "link"
    QUOTE = "quote"
    USER = "user"
    TOOL = "tool"
    ADDED = "added"
    ADDED_WORD = "added-word"
    """The words of an added line that differ from the removed one."""
    REMOVED = "removed"
    REMOVED_WORD = "removed-word"
    SUCCESS = "success"
    WARNING = "warning"
    ERROR = "error"
    SELECTED = "selected"
    STATUS = "status"


class Syntax(StrEnum):
    """The kind of a source code token."""

    COMMENT = "comment"
    KEYWORD = "keyword"
    STRING = "string"
    NUMBER = "number"
    NAME = "name"
    """A defined name: a function, a class, a heading, a key."""
    BUILTIN = "builtin"
    """A name of the language: a type, a function, a decorator, a shell variable."""
    ADDED = "added"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class Theme:
    """A set of colours, and what the terminal can do with text."""

    name: str
    sgr: dict[TextRole, str]
    """Parameters of `CSI … m` by role; absent or empty: the terminal's default."""
    code: dict[Syntax, str] = field(default_factory=dict)
    """The same for source code."""
    has_links: bool = False
    """Whether text can be a link (OSC 8); otherwise the address is shown after it."""
    wraps_words: bool = True
    """Whether prose is broken between words; otherwise a paragraph is one line, which the terminal wraps and copies whole."""

    @property
    def is_plain(self) -> bool:
        """Whether there are no colours: then roles are shown in words, tables and fences in characters."""
        return self.name == PLAIN.name

    def paint(self, role: TextRole, text: str) -> str:
        """Return `text` in the role's colours."""
        return painted(self.sgr.get(role, ""), text)

    def paint_all(self, roles: Iterable[TextRole], text: str) -> str:
        """Return `text` in several roles; where they conflict, the last one wins."""
        return painted(";".join(filter(None, (self.sgr.get(role) for role in roles))), text)

    def in_colours_of(self, other: "Theme") -> "Theme":
        """Return the colours of `other` with this theme's terminal capabilities."""
        return replace(other, has_links=other.has_links and self.has_links, wraps_words=self.wraps_words)

    def style(self) -> dict[str, str]:
        """Return the colours for prompt_toolkit: style class -> style string."""
        return {role.value: _style(self.sgr.get(role, "")) for role in TextRole}


def painted(parameters: str, text: str) -> str:
    """Return `text` between `CSI … m` with these parameters and a reset."""
    return f"\x1b[{parameters}m{text}{RESET}" if parameters and text else text


PLAIN = Theme("plain", {})
"""No colours: for `NO_COLOR`, `--no-color` and terminals without capabilities."""

# Attributes other than colours, the same in all themes.
_SHAPES = {
    TextRole.STRONG: "1",
    TextRole.EMPHASIS: "3",
    TextRole.STRUCK: "9",
    TextRole.USER: "1",
    TextRole.SELECTED: "7",
}

DEFAULT = Theme(
    "default",
    _SHAPES
    | {
        TextRole.MUTED: "2",
        TextRole.ACCENT: "36",
        TextRole.HEADING: "1;36",
        TextRole.CODE: "36",
        TextRole.LINK: "4;34",
        TextRole.QUOTE: "3",
        TextRole.TOOL: "1",
        TextRole.ADDED: "32",
        TextRole.ADDED_WORD: "32;7",
        TextRole.REMOVED: "31",
        TextRole.REMOVED_WORD: "31;7",
        TextRole.SUCCESS: "32",
        TextRole.WARNING: "33",
        TextRole.ERROR: "31",
        TextRole.STATUS: "2",
    },
    {
        Syntax.COMMENT: "2;3",
        Syntax.KEYWORD: "35",
        Syntax.STRING: "32",
        Syntax.NUMBER: "33",
        Syntax.NAME: "34",
        Syntax.BUILTIN: "36",
        Syntax.ADDED: "32",
        Syntax.REMOVED: "31",
    },
    has_links=True,
)
"""Colours of the terminal's palette, without black, white and bright ones: readable on any background."""

DARK = Theme(
    "dark",
    _SHAPES
    | {
        TextRole.MUTED: "38;5;245",
        TextRole.ACCENT: "38;5;80",
        TextRole.HEADING: "1;38;5;80",
        TextRole.CODE: "38;5;180",
        TextRole.LINK: "4;38;5;110",
        TextRole.QUOTE: "3;38;5;250",
        TextRole.USER: "1;38;5;117",
        TextRole.TOOL: "1",
        TextRole.ADDED: "38;5;114",
        TextRole.ADDED_WORD: "38;5;157;48;5;22",
        TextRole.REMOVED: "38;5;174",
        TextRole.REMOVED_WORD: "38;5;224;48;5;52",
        TextRole.SUCCESS: "38;5;114",
        TextRole.WARNING: "38;5;179",
        TextRole.ERROR: "38;5;203",
        TextRole.STATUS: "38;5;245",
    },
    {
        Syntax.COMMENT: "3;38;5;244",
        Syntax.KEYWORD: "38;5;176",
        Syntax.STRING: "38;5;114",
        Syntax.NUMBER: "38;5;173",
        Syntax.NAME: "38;5;111",
        Syntax.BUILTIN: "38;5;80",
        Syntax.ADDED: "38;5;114",
        Syntax.REMOVED: "38;5;174",
    },
    has_links=True,
)
"""For dark backgrounds, with the 256 colours that nearly every terminal has."""

LIGHT = Theme(
    "light",
    _SHAPES
    | {
        TextRole.MUTED: "38;5;243",
        TextRole.ACCENT: "38;5;30",
        TextRole.HEADING: "1;38;5;24",
        TextRole.CODE: "38;5;94",
        TextRole.LINK: "4;38;5;25",
        TextRole.QUOTE: "3;38;5;240",
        TextRole.USER: "1;38;5;25",
        TextRole.TOOL: "1",
        TextRole.ADDED: "38;5;28",
        TextRole.ADDED_WORD: "38;5;22;48;5;194",
        TextRole.REMOVED: "38;5;124",
        TextRole.REMOVED_WORD: "38;5;88;48;5;224",
        TextRole.SUCCESS: "38;5;28",
        TextRole.WARNING: "38;5;130",
        TextRole.ERROR: "38;5;160",
        TextRole.STATUS: "38;5;243",
    },
    {
        Syntax.COMMENT: "3;38;5;244",
        Syntax.KEYWORD: "38;5;90",
        Syntax.STRING: "38;5;28",
        Syntax.NUMBER: "38;5;130",
        Syntax.NAME: "38;5;25",
        Syntax.BUILTIN: "38;5;30",
        Syntax.ADDED: "38;5;28",
        Syntax.REMOVED: "38;5;124",
    },
    has_links=True,
)
"""The same for light backgrounds."""

THEMES = {theme.name: theme for theme in (DEFAULT, DARK, LIGHT, PLAIN)}
"""The themes by the name in `config.toml` and `/theme`."""


def choose(env: Mapping[str, str], name: str = "auto", *, is_dark: bool | None = None) -> Theme:
    """Return the theme for a terminal with this environment.

    A non-empty `NO_COLOR` and `TERM=dumb` take precedence, then `name`, a key of `THEMES`. `auto` and unknown names choose
    by the background, if `is_dark` or `COLORFGBG` tells it and the terminal has 256 colours; else the default theme.
    """
    if env.get("NO_COLOR") or env.get("TERM", "") in {"", "dumb"}:
        return PLAIN
    chosen = THEMES.get(name) or _by_background(env, is_dark)
    return replace(chosen, has_links=chosen.has_links and _has_links(env))


def _by_background(env: Mapping[str, str], is_dark: bool | None) -> Theme:
    if "256" not in env.get("TERM", "") and not env.get("COLORTERM"):
        return DEFAULT
    if is_dark is None:
        background = env.get("COLORFGBG", "").rpartition(";")[2]
        if not background.isdecimal():
            return DEFAULT
        is_dark = int(background) < 7 or int(background) == 8  # of the 16 colours, 7 and 9 to 15 are light
    return DARK if is_dark else LIGHT


def _has_links(env: Mapping[str, str]) -> bool:
    """Return whether the terminal supports OSC 8. One that does not would drop the address silently."""
    if env.get("TERM", "") == "linux" or env.get("TERM_PROGRAM") == "Apple_Terminal":
        return False
    if env.get("TERM_PROGRAM") == "tmux":
        return [int(part) for part in re.findall(r"\d+", env.get("TERM_PROGRAM_VERSION", ""))] >= [3, 4]
    return not env.get("TMUX") and not env.get("TERM", "").startswith("screen")


# --- for prompt_toolkit -----------------------------------------------------------------------------------------

_SHAPE_WORDS = {"1": "bold", "2": "dim", "3": "italic", "4": "underline", "7": "reverse", "9": "strike"}
_HUES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "gray")
# Intensities of the 6 x 6 x 6 colour cube, colours 16 to 231.
_CUBE = (0, 95, 135, 175, 215, 255)


def _style(parameters: str) -> str:
    """Translate parameters of `CSI … m` to a prompt_toolkit style string."""
    words: list[str] = []
    rest = iter(parameters.split(";") if parameters else ())
    for parameter in rest:
        if parameter in _SHAPE_WORDS:
            words.append(_SHAPE_WORDS[parameter])
        elif parameter in {"38", "48"}:
            next(rest)  # skip the 5 of `38;5;N`
            words.append(f"{'bg:' if parameter == '48' else ''}{_hex(int(next(rest)))}")
        else:
            words.append(f"ansi{_HUES[int(parameter) - 30]}")
    return " ".join(words)


def _hex(number: int) -> str:
    """Return one of the colours 16 to 255 as `#rrggbb`."""
    if number >= 232:
        grey = 8 + 10 * (number - 232)
        return f"#{grey:02x}{grey:02x}{grey:02x}"
    red, green, blue = (_CUBE[(number - 16) // step % 6] for step in (36, 6, 1))
    return f"#{red:02x}{green:02x}{blue:02x}"
