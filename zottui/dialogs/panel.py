"""Panels of extensions: lines that they draw, and the keys that they get."""

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
"""That an extension gets by their names (`docs/extensions.md`); characters come as `rune`, and escape closes."""


class PanelDialog:
    """One panel, as a dialog. `Panels` opens and closes it."""

    has_editor = False

    def __init__(self, desk: UiContext, panel: ExtPanel) -> None:
        """Shows `panel` until it is given another one."""
        self.panel = panel
        self._desk = desk
        self._size = (0, 0)
        self.is_closed = False
        """The user has closed it; the daemon may not have said so yet."""

    def rows(self, width: int, height: int) -> list[Row]:
        """As `Dialog` says; the extension is told how much room it has, when that is news."""
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
        """As `Dialog` says."""
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
        if (width, height) != self._size and width > 0 and height > 0:
            self._size = (width, height)
            panel_id = self.panel.panel_id
            self._tell(api.PanelResize(session=self._session, panel_id=panel_id, width=width, height=height))

    def _close(self) -> None:
        self.is_closed = True
        self._desk.close(self)
        self._tell(api.PanelClose(session=self._session, panel_id=self.panel.panel_id))

    @property
    def _session(self) -> str:
        session = self._desk.state.session
        return self.panel.session or (session.id if session else "")

    def _tell(self, params: api.PanelKey | api.PanelResize | api.PanelClose) -> None:
        async def telling() -> None:
            await self._desk.ask(params, api.Nothing)

        self._desk.spawn(telling())


class Panels:
    """Keeps a dialog open for each panel of the session."""

    def __init__(self, desk: UiContext) -> None:
        """Nothing is open before the first `look`."""
        self._desk = desk
        self._open: dict[tuple[str, str], PanelDialog] = {}

    def look(self) -> None:
        """Follow the state; called whenever it has changed."""
        panels = {(one.extension, one.panel_id): one for one in self._desk.state.panels}
        for key in [key for key in self._open if key not in panels]:
            dialog = self._open.pop(key)
            self._desk.close(dialog)
            if not dialog.is_closed:
                self._desk.say(f"{clean(key[0])} closed its panel")
        for key, panel in panels.items():
            if key in self._open:
                self._open[key].panel = panel
            else:
                dialog = self._open[key] = PanelDialog(self._desk, panel)
                self._desk.open(dialog)
