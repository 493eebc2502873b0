"""The keys of the viewer."""

from typing import NamedTuple

_LABELS = {" ": "space", "pagedown": "page down", "pageup": "page up", "escape": "esc"}


class ViewerKey(NamedTuple):
    """An action and its keys."""

    keys: tuple[str, ...]
    """Their names in prompt_toolkit."""
    action: str
    what: str
    """What it does, for `/keys`."""

    @property
    def label(self) -> str:
        """The keys for lists: `down, j, ctrl+n`."""
        return ", ".join(_LABELS.get(key, key.replace("c-", "ctrl+")) for key in self.keys)


KEYS = (
    ViewerKey(("down", "j", "c-n"), "down", "one line down"),
    ViewerKey(("up", "k", "c-p"), "up", "one line up"),
    ViewerKey(("pagedown", " ", "c-f"), "page-down", "one page down"),
    ViewerKey(("pageup", "b", "c-b"), "page-up", "one page up"),
    ViewerKey(("c-d", "d"), "half-down", "half a page down"),
    ViewerKey(("c-u", "u"), "half-up", "half a page up"),
    ViewerKey(("home", "g", "<"), "oldest", "to the beginning"),
    ViewerKey(("end", "G", ">"), "newest", "to the end"),
    ViewerKey(("}", "]"), "next-prompt", "to the next prompt"),
    ViewerKey(("{", "p"), "previous-prompt", "to the previous prompt"),
    ViewerKey(("enter", "tab"), "toggle", "expand or collapse a tool's output"),
    ViewerKey(("e",), "toggle-all", "expand or collapse all tools' output"),
    ViewerKey(("/",), "search", "search"),
    ViewerKey(("n",), "next-hit", "next match"),
    ViewerKey(("N",), "previous-hit", "previous match"),
    ViewerKey(("y",), "copy", "copy the block under the cursor"),
    ViewerKey(("[",), "print", "print a tool's output into the scrollback when you leave"),
    ViewerKey(("f",), "changes", "files that this turn has changed; the patch is printed when you leave"),
    ViewerKey(("v",), "edit", "open the loaded messages in $VISUAL or $EDITOR"),
    ViewerKey(("q", "c-t", "c-c"), "leave", "leave the viewer"),
    ViewerKey(("escape",), "stop", "stop a search, or leave the viewer"),
)

HINTS = ("q back", "/ search", "enter expand", "{ } prompts", "y copy", "v editor", "[ print", "f files")
"""Hints for the last line: keys that users would not guess."""

BY_KEY = {name: key.action for key in KEYS for name in key.keys}
