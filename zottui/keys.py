"""Keys that mean something wherever the cursor is, and the way of all others through the dialog that is open."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from prompt_toolkit.filters import Always, Condition, vi_mode, vi_navigation_mode
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent, KeyProcessor
from prompt_toolkit.keys import Keys

from zottui.dialogs.keys import TYPED


class KeyBinding(NamedTuple):
    """A thing that a key does."""

    key: str
    """As prompt_toolkit calls it."""
    label: str
    """As people write it."""
    name: str
    what: str
    """What it does, for a list of keys."""


KEYS = (
    KeyBinding("escape", "esc", "interrupt", "interrupt the run and hold the queue"),
    KeyBinding("c-c", "ctrl+c", "cancel", "clear the editor; twice: leave, runs continue"),
    KeyBinding("c-d", "ctrl+d", "leave", "leave, when the editor is empty"),
    KeyBinding("c-s", "ctrl+s", "steer", "send the prompt into the run, before its next step"),
    KeyBinding("c-t", "ctrl+t", "view", "open the viewer: the whole conversation"),
    KeyBinding("c-o", "ctrl+o", "detail", "show the whole output of the last tool call"),
    KeyBinding("f2", "F2", "overview", "show all sessions and what needs you"),
    KeyBinding("s-tab", "shift+tab", "mode", "switch the mode: ask, read-only, yolo (asks first)"),
    KeyBinding("c-l", "ctrl+l", "repaint", "redraw the lower part of the screen"),
    KeyBinding("c-z", "ctrl+z", "suspend", "suspend; fg resumes"),
)
"""For `/keys`, and for `bindings`."""

FILTERS = {"interrupt": ~vi_mode | vi_navigation_mode}
"""When a key means that, by name; else always. In vi's other modes Escape goes back to NORMAL."""


class DialogKeys:
    """Every key goes to the dialog that is open first; what it does not want goes on as if there were none."""

    def __init__(
        self, take: Callable[[str, str], bool], is_open: Callable[[], bool], pressed: Callable[[], None] = lambda: None
    ) -> None:
        """`take` gives the dialog a key (name, text), and says whether that meant something to it.

        `pressed` is called for each key, before anything comes of it.
        """
        self._take = take
        self._pressed = pressed
        self._is_open = is_open
        self._refused = False
        """The key that comes next was offered already."""
        self._passes = False
        """The one that is being handled was."""

    def add_to(self, made: KeyBindings) -> None:
        """Bind every key. Escape by its name, too: prompt_toolkit binds it with precedence for vi."""
        for key in (Keys.Any, "escape"):
            made.add(key, filter=Condition(self._offers), eager=True)(self._offer)

    def watch(self, processor: KeyProcessor) -> None:
        """Learn when a key has gone its way; once, with the application's key processor."""
        processor.before_key_press += self._begins
        processor.after_key_press += self._has_gone

    def _offers(self) -> bool:
        return self._is_open() and not self._passes

    def _offer(self, event: KeyPressEvent) -> None:
        press = event.key_sequence[0]
        if press.key is Keys.Ignore:
            return
        name = press.key.value if isinstance(press.key, Keys) else TYPED
        if not self._take(name, press.data):
            self._refused = True
            event.key_processor.feed(press, first=True)  # comes again, as the next one

    def _begins(self, processor: KeyProcessor) -> None:
        if not processor.key_buffer:  # else it belongs to the one before: Escape waits for what comes behind it
            if not self._refused:
                self._pressed()
            self._passes, self._refused = self._refused, False

    def _has_gone(self, processor: KeyProcessor) -> None:
        if not processor.key_buffer:
            self._passes = False


def bindings(dialogs: DialogKeys, actions: Mapping[str, Callable[[KeyPressEvent], None]]) -> KeyBindings:
    """`KEYS` with these actions, by name, behind the dialogs."""
    made = KeyBindings()
    dialogs.add_to(made)
    for key in KEYS:
        made.add(key.key, filter=FILTERS.get(key.name, Always()))(actions[key.name])
    return made
