"""Panels of extensions: an extension provides the lines and gets the keys."""

from zotd.wire import api
from zotd.wire.events import ExtPanel
from zottui.dialogs.frame import framed, headed
from zottui.dialogs.keys import TYPED, named
from zottui.theme import TextRole
from zottui.ui_context import Row, UiContext
from zottui.widgets.cells import clean, cut, piece

KEYS = frozenset(
    {"up", "down", "left", "right", "enter", "tab", "pageup", "pagedown", "home", "end", "backspace", "delete"}
)
"""Keys that an extension gets by name (`docs/extensions.md`). Characters are sent as `rune`; escape closes the panel."""


class PanelDialog:
    """A dialog that shows one panel. `Panels` opens and closes it."""

    has_editor = False

    def __init__(self, ui: UiContext, panel: ExtPanel) -> None:
        """Show `panel`; assign another one to the attribute to update it."""
        self.panel = panel
        self._ui = ui
        self._size = (0, 0)
        self.is_closed = False
        """The user has closed it; the daemon's event may still be on its way."""

    def rows(self, width: int, height: int) -> list[Row]:
        """Return title, lines and footer. Tells the extension the panel's size when it has changed."""
        panel = self.panel
        footer: list[Row] = (
            [[piece(TextRole.MUTED, cut(clean(panel.footer), width))]] if panel.footer and height > 2 else []
        )
        self._resize(width, max(height - 1 - len(footer), 1))
        lines: list[Row] = [[piece(TextRole.TEXT, clean(line))] for line in panel.lines]
        head = headed(panel.title or panel.extension, f"{panel.extension} · esc closes")
        room = max(height - len(footer), 0)
        return [*framed(head, lambda left: lines[:left], (), width=width, height=room), *footer]

    def key(self, name: str, text: str) -> bool:
        """Close the panel on escape, and send characters and the keys of `KEYS` to the extension."""
        key = named(name)
        if key == "escape":
            self._close()
        elif key in KEYS:
            self._send(key)
        elif name == TYPED:
            self._send("rune", text)
        else:
            return False
        return True

    def _send(self, key: str, text: str = "") -> None:
        self._tell(api.PanelKey(session=self._session, panel_id=self.panel.panel_id, key=key, text=text))

    def _resize(self, width: int, height: int) -> None:
        # `rows` is called for each frame; tell the extension only about a new size.
        if (width, height) != self._size and width > 0 and height > 0:
            self._size = (width, height)
            panel_id = self.panel.panel_id
            self._tell(api.PanelResize(session=self._session, panel_id=panel_id, width=width, height=height))

    def _close(self) -> None:
        self.is_closed = True
        self._ui.close(self)
        self._tell(api.PanelClose(session=self._session, panel_id=self.panel.panel_id))

    @property
    def _session(self) -> str:
        session = self._ui.state.session
        return self.panel.session or (session.id if session else "")

    def _tell(self, params: api.PanelKey | api.PanelResize | api.PanelClose) -> None:
        async def telling() -> None:
            await self._ui.ask(params, api.Nothing)

        self._ui.spawn(telling())


class Panels:
    """Keeps a dialog open for each panel in the state."""

    def __init__(self, ui: UiContext) -> None:
        """Open nothing before the first `look`."""
        self._ui = ui
        self._open: dict[tuple[str, str], PanelDialog] = {}

    def look(self) -> None:
        """Open, update and close dialogs to match the state; call it after each change of the state."""
        panels = {(one.extension, one.panel_id): one for one in self._ui.state.panels}
        for key in [key for key in self._open if key not in panels]:
            dialog = self._open.pop(key)
            self._ui.close(dialog)
            if not dialog.is_closed:
                self._ui.say(f"{clean(key[0])} closed its panel")
        for key, panel in panels.items():
            if key in self._open:
                self._open[key].panel = panel
            else:
                dialog = self._open[key] = PanelDialog(self._ui, panel)
                self._ui.open(dialog)
