"""Global keys, and the routing of all keys through the open dialog."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from prompt_toolkit.filters import Always, Condition, vi_mode, vi_navigation_mode
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent, KeyProcessor
from prompt_toolkit.keys import Keys

from zottui.dialogs.keys import TYPED


class KeyBinding(NamedTuple):
    """A global key and its action."""

    key: str
    """Its name in prompt_toolkit."""
    label: str
    """Its name in lists of keys."""
    name: str
    what: str
    """What it does, for `/keys` and the documentation."""


KEYS = (
    KeyBinding("escape", "esc", "interrupt", "interrupt the run and hold the queue"),
    KeyBinding("c-c", "ctrl+c", "cancel", "clear the editor; twice: leave, runs continue"),
    KeyBinding("c-d", "ctrl+d", "leave", "leave, when the editor is empty"),
    KeyBinding("c-s", "ctrl+s", "steer", "send the prompt into the run, before its next step"),
    KeyBinding("c-b", "ctrl+b", "background", "send the running command to the background, when the editor is empty"),
    KeyBinding("c-t", "ctrl+t", "view", "open the viewer: the whole conversation"),
    KeyBinding("c-o", "ctrl+o", "detail", "show the whole output of the last tool call"),
    KeyBinding("f2", "F2", "overview", "show all sessions and what needs you"),
    KeyBinding("s-tab", "shift+tab", "mode", "switch the mode: workspace, ask, read-only, yolo (asks first)"),
    KeyBinding("c-l", "ctrl+l", "repaint", "redraw the lower part of the screen"),
    KeyBinding("c-z", "ctrl+z", "suspend", "suspend; fg resumes"),
)
"""All global keys; `bindings` and `/keys` read this table."""

FILTERS = {"interrupt": ~vi_mode | vi_navigation_mode}
"""When a key is active, by action; by default always. In vi's other modes Escape returns to NORMAL."""


class DialogKeys:
    """Offers each key to the open dialog first. A key that the dialog refuses is handled as if no dialog were open.

    prompt_toolkit cannot pass a key on to the next handler, so a refused key is fed to the processor again and the
    bindings of this class are switched off while it is handled.
    """

    def __init__(
        self, take: Callable[[str, str], bool], is_open: Callable[[], bool], pressed: Callable[[], None] = lambda: None
    ) -> None:
        """`take` offers the dialog a key (name, text) and returns whether the dialog has used it.

        `pressed` is called once for each key, before it is handled.
        """
        self._take = take
        self._pressed = pressed
        self._is_open = is_open
        # The next key in the processor is one that the dialog has refused.
        self._refused = False
        # The current key is such a key: do not offer it again.
        self._passes = False

    def add_to(self, made: KeyBindings) -> None:
        """Bind every key. Escape also by name: prompt_toolkit's binding for vi would take precedence over `Any`."""
        for key in (Keys.Any, "escape"):
            made.add(key, filter=Condition(self._offers), eager=True)(self._offer)

    def watch(self, processor: KeyProcessor) -> None:
        """Observe the application's key processor; call this once."""
        processor.before_key_press += self._begins
        processor.after_key_press += self._has_gone

    def _offers(self) -> bool:
        return self._is_open() and not self._passes

    def _offer(self, event: KeyPressEvent) -> None:
        press = event.key_sequence[0]
        if press.key is Keys.Ignore:  # ends the wait after Escape; see `zottui.terminal.keyboard`
            return
        name = press.key.value if isinstance(press.key, Keys) else TYPED
        if not self._take(name, press.data):
            self._refused = True
            event.key_processor.feed(press, first=True)  # handled again, before any key that is already queued

    def _begins(self, processor: KeyProcessor) -> None:
        if not processor.key_buffer:  # a non-empty buffer: Escape still waits for a possible second key of a sequence
            if not self._refused:
                self._pressed()
            self._passes, self._refused = self._refused, False

    def _has_gone(self, processor: KeyProcessor) -> None:
        if not processor.key_buffer:
            self._passes = False


def bindings(dialogs: DialogKeys, actions: Mapping[str, Callable[[KeyPressEvent], None]]) -> KeyBindings:
    """Bind `KEYS` to `actions`, by name, after the bindings of `dialogs`."""
    made = KeyBindings()
    dialogs.add_to(made)
    for key in KEYS:
        made.add(key.key, filter=FILTERS.get(key.name, Always()))(actions[key.name])
    return made
