"""What the keys of the viewer do."""

from typing import NamedTuple

_LABELS = {" ": "space", "pagedown": "page down", "pageup": "page up", "escape": "esc"}


class Key(NamedTuple):
    """A thing that some keys do."""

    keys: tuple[str, ...]
    """As prompt_toolkit calls them."""
    action: str
    what: str
    """What it does, for a list of keys."""

    @property
    def label(self) -> str:
        """The keys as people write them: `down, j, ctrl+n`."""
        return ", ".join(_LABELS.get(key, key.replace("c-", "ctrl+")) for key in self.keys)


KEYS = (
    Key(("down", "j", "c-n"), "down", "a line down"),
    Key(("up", "k", "c-p"), "up", "a line up"),
    Key(("pagedown", " ", "c-f"), "page-down", "a page down"),
    Key(("pageup", "b", "c-b"), "page-up", "a page up"),
    Key(("c-d", "d"), "half-down", "half a page down"),
    Key(("c-u", "u"), "half-up", "half a page up"),
    Key(("home", "g", "<"), "oldest", "to the beginning"),
    Key(("end", "G", ">"), "newest", "to the end"),
    Key(("}", "]"), "next-prompt", "to the next prompt"),
    Key(("{", "p"), "previous-prompt", "to the prompt before"),
    Key(("enter", "tab"), "toggle", "show a tool's whole output, or its end again"),
    Key(("e",), "toggle-all", "the same for all tools"),
    Key(("/",), "search", "look for words"),
    Key(("n",), "next-hit", "the next hit"),
    Key(("N",), "previous-hit", "the hit before"),
    Key(("y",), "copy", "copy what the cursor is on"),
    Key(("[",), "print", "print the output behind the conversation when you go back"),
    Key(("v",), "edit", "open what is loaded with $VISUAL or $EDITOR"),
    Key(("q", "c-t", "c-c"), "leave", "go back"),
    Key(("escape",), "stop", "stop a search; when there is none, go back"),
)

HINTS = ("q back", "/ search", "enter whole", "{ } prompts", "y copy", "v editor", "[ print")
"""For the last line: what is not tried out by itself."""

BY_KEY = {name: key.action for key in KEYS for name in key.keys}
