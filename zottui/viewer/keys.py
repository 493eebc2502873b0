"""What the keys of the viewer do."""

from typing import NamedTuple


class Key(NamedTuple):
    """A thing that some keys do."""

    keys: tuple[str, ...]
    """As prompt_toolkit calls them."""
    action: str


KEYS = (
    Key(("down", "j", "c-n"), "down"),
    Key(("up", "k", "c-p"), "up"),
    Key(("pagedown", " ", "c-f"), "page-down"),
    Key(("pageup", "b", "c-b"), "page-up"),
    Key(("c-d", "d"), "half-down"),
    Key(("c-u", "u"), "half-up"),
    Key(("home", "g", "<"), "oldest"),
    Key(("end", "G", ">"), "newest"),
    Key(("}", "]"), "next-prompt"),
    Key(("{", "p"), "previous-prompt"),
    Key(("enter", "tab"), "toggle"),
    Key(("e",), "toggle-all"),
    Key(("/",), "search"),
    Key(("n",), "next-hit"),
    Key(("N",), "previous-hit"),
    Key(("y",), "copy"),
    Key(("[",), "print"),
    Key(("v",), "edit"),
    Key(("q", "c-t", "c-c"), "leave"),
    Key(("escape",), "stop"),
)

HINTS = "enter whole  { } prompts  / search  y copy  [ print  v editor  q back"
"""For the last line: what is not tried out by itself."""

BY_KEY = {name: key.action for key in KEYS for name in key.keys}
