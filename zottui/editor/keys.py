"""The editor's own keys. All others are prompt_toolkit's, which follow readline or vi."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from prompt_toolkit.filters import FilterOrBool
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent

Action = Callable[[KeyPressEvent], object]
"""The action of a key; its result is ignored."""

_MODIFIERS = {"c-": "ctrl+", "s-": "shift+"}


class EditorKey(NamedTuple):
    """An action and its keys."""

    keys: tuple[tuple[str, ...], ...]
    """Key sequences, in prompt_toolkit's names."""
    name: str
    """Name of the action."""
    what: str
    """What it does, for `/keys` and the documentation."""

    @property
    def label(self) -> str:
        """The keys for lists: `alt+enter, ctrl+j`."""
        return ", ".join(_written(sequence) for sequence in self.keys)


KEYS = (
    EditorKey((("enter",),), "submit", "send the prompt; during a run it is queued"),
    EditorKey(
        (("escape", "enter"), ("c-j",)), "newline", "insert a newline; so do shift+enter, and enter after a backslash"
    ),
    EditorKey((("up",),), "older", "on the first line: the previous prompt of this session"),
    EditorKey((("down",),), "newer", "on the last line: the next prompt, and at the end the draft"),
    EditorKey((("c-r",),), "search", "search the prompts of all sessions"),
    EditorKey((("c-g",),), "edit", "edit the prompt in $VISUAL or $EDITOR"),
    EditorKey((("c-v",),), "paste-image", "attach the image in the clipboard"),
    EditorKey((("c-_",),), "undo", "undo"),
    EditorKey((("c-r",),), "redo", "redo, in vi's NORMAL mode"),
)
"""All keys of the editor; `bindings` and `/keys` read this table."""


def bindings(actions: Mapping[str, Action], filters: Mapping[str, FilterOrBool]) -> KeyBindings:
    """Bind `KEYS` to `actions`, by name; a filter of the same name restricts when the key is active."""
    made = KeyBindings()
    for key in KEYS:
        for sequence in key.keys:
            saves = _never if key.name in {"undo", "redo"} else _always  # a saved state would make undo undo nothing
            made.add(*sequence, filter=filters.get(key.name, True), save_before=saves)(quiet(actions[key.name]))
    return made


def quiet(action: Action) -> Callable[[KeyPressEvent], None]:
    """Drop the result of `action`: prompt_toolkit would not redraw if it were `NotImplemented`."""

    def handler(event: KeyPressEvent) -> None:
        action(event)

    return handler


def _always(_: KeyPressEvent) -> bool:
    return True


def _never(_: KeyPressEvent) -> bool:
    return False


def _written(sequence: tuple[str, ...]) -> str:
    if len(sequence) == 2 and sequence[0] == "escape":
        return f"alt+{_written(sequence[1:])}"
    return " ".join(_MODIFIERS.get(key[:2], key[:2]) + key[2:] for key in sequence)
