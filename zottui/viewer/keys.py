"""What the keys of the viewer do."""

from typing import NamedTuple

_LABELS = {" ": "space", "pagedown": "page down", "pageup": "page up", "escape": "esc"}


class ViewerKey(NamedTuple):
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
    ViewerKey(("down", "j", "c-n"), "down", "a line down"),
    ViewerKey(("up", "k", "c-p"), "up", "a line up"),
    ViewerKey(("pagedown", " ", "c-f"), "page-down", "a page down"),
    ViewerKey(("pageup", "b", "c-b"), "page-up", "a page up"),
    ViewerKey(("c-d", "d"), "half-down", "half a page down"),
    ViewerKey(("c-u", "u"), "half-up", "half a page up"),
    ViewerKey(("home", "g", "<"), "oldest", "to the beginning"),
    ViewerKey(("end", "G", ">"), "newest", "to the end"),
    ViewerKey(("}", "]"), "next-prompt", "to the next prompt"),
    ViewerKey(("{", "p"), "previous-prompt", "to the prompt before"),
    ViewerKey(("enter", "tab"), "toggle", "show a tool's whole output, or its end again"),
    ViewerKey(("e",), "toggle-all", "the same for all tools"),
    ViewerKey(("/",), "search", "look for words"),
    ViewerKey(("n",), "next-hit", "the next hit"),
    ViewerKey(("N",), "previous-hit", "the hit before"),
    ViewerKey(("y",), "copy", "copy what the cursor is on"),
    ViewerKey(("[",), "print", "print the output behind the conversation when you go back"),
    ViewerKey(("v",), "edit", "open what is loaded with $VISUAL or $EDITOR"),
    ViewerKey(("q", "c-t", "c-c"), "leave", "go back"),
    ViewerKey(("escape",), "stop", "stop a search; when there is none, go back"),
)

HINTS = ("q back", "/ search", "enter whole", "{ } prompts", "y copy", "v editor", "[ print")
"""For the last line: what is not tried out by itself."""

BY_KEY = {name: key.action for key in KEYS for name in key.keys}
