"""The viewer's prompt_toolkit application, on the alternate screen.

A redraw builds only the visible rows, so its cost does not depend on the length of the session.
"""

import sys
from contextlib import suppress
from dataclasses import replace

from prompt_toolkit.application import Application, get_app
from prompt_toolkit.data_structures import Point
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input
from prompt_toolkit.input.typeahead import get_typeahead
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import HSplit, Layout, UIContent, UIControl, Window
from prompt_toolkit.mouse_events import MouseEvent, MouseEventType
from prompt_toolkit.output import Output
from prompt_toolkit.styles import Style

from zottui import external_editor
from zottui.dialogs.keys import TYPED
from zottui.terminal.keyboard import ESCAPE_S, Keyboard
from zottui.ui_context import UiContext
from zottui.viewer import finding
from zottui.viewer.keys import KEYS
from zottui.viewer.viewing import Viewer
from zottui.viewer.visit import Visit

FRAME_S = 1 / 30
"""Least seconds between two redraws: a burst of wheel events then causes one."""


async def shown(ui: UiContext, visit: Visit, *, keyboard: Input | None = None, display: Output | None = None) -> None:
    """Show the viewer until the user leaves it. `keyboard` and `display` replace the terminal's, for tests."""
    while True:
        viewer = await _seen(ui, visit, keyboard, display)
        ui.print(*viewer.printed)
        if not viewer.wants_editor:
            _give_back_typed()
            return
        await external_editor.edited(ui, finding.conversation(visit.reader.loaded.messages), suffix=".md")
        visit = replace(visit, note="", turn=None)


async def _seen(ui: UiContext, visit: Visit, keyboard: Input | None, display: Output | None) -> Viewer:
    def leave() -> None:
        if not app.is_done:
            app.exit()

    def redraw() -> None:
        app.invalidate()

    viewer = Viewer(ui, visit, leave=leave, redraw=redraw)
    conversation = _Conversation(viewer)
    app: Application[None] = Application(
        Layout(HSplit([Window(conversation), Window(_LastLine(viewer), height=1)]), focused_element=conversation),
        style=Style.from_dict(ui.theme.style()),
        include_default_pygments_style=False,
        key_bindings=_bindings(viewer),
        full_screen=True,
        mouse_support=True,
        min_redraw_interval=FRAME_S,
        terminal_size_polling_interval=None,  # SIGWINCH reports it; polling would wake an idle client
        input=keyboard or Keyboard(sys.stdin, on_focus=lambda _: None),
        output=display,
    )
    app.ttimeoutlen = ESCAPE_S

    async def showing() -> None:
        with suppress(EOFError):  # the terminal is gone; the application below notices it too and ends the client
            await app.run_async(handle_sigint=False)

    # Suspended, the application below neither draws nor reads keys, and the terminal is ours.
    async with ui.suspended():
        await viewer.run(showing())
    return viewer


def _give_back_typed() -> None:
    """Pass keys that were typed after `q` to the application below, which would otherwise read them at its next start."""
    below = get_app()
    typed = get_typeahead(below.input)
    if typed:
        below.key_processor.feed_multiple(typed)
        below.key_processor.process_keys()


class _Conversation(UIControl):
    """A control that provides only the visible rows: prompt_toolkit's own controls lay out all lines."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer

    def is_focusable(self) -> bool:
        return True

    def create_content(self, width: int, height: int) -> UIContent:
        rows, cursor = self._viewer.rows(width, height)
        return UIContent(lambda at: [*rows[at]], len(rows), Point(0, cursor))

    def mouse_handler(self, mouse_event: MouseEvent) -> None:
        match mouse_event.event_type:
            case MouseEventType.SCROLL_UP | MouseEventType.SCROLL_DOWN as turned:
                self._viewer.wheel(down=turned is MouseEventType.SCROLL_DOWN)
            case MouseEventType.MOUSE_DOWN:
                self._viewer.click(mouse_event.position.y)
            case _:
                pass


class _LastLine(UIControl):
    """The last line: the position, messages, and the search that is being typed."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer

    def create_content(self, width: int, height: int) -> UIContent:  # noqa: ARG002  (as in `UIControl`)
        row: StyleAndTextTuples = [*self._viewer.last_line(width)]
        return UIContent(lambda _: row, 1, show_cursor=False)


def _bindings(viewer: Viewer) -> KeyBindings:
    """Bind each key of `KEYS`, and while a search is typed all keys."""
    made = KeyBindings()

    def pressed(event: KeyPressEvent) -> None:
        press = event.key_sequence[0]
        viewer.key(press.key.value if isinstance(press.key, Keys) else TYPED, press.data)

    for name in (name for key in KEYS for name in key.keys):
        made.add(name, eager=True)(pressed)
    is_typing = Condition(lambda: viewer.is_typing)
    made.add(Keys.Any, filter=is_typing, eager=True)(pressed)
    return made
