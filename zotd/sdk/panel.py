"""A panel: lines that an extension shows in the user's terminal, with handlers for keys."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .pipe import Frame, HostPipe
from .work import FunctionRun

KeyHandler = Callable[[str, str], object]
"""Called with a key (`up`, `enter`, `esc`, `rune` …) and, for `rune`, the typed text."""
ResizeHandler = Callable[[int, int], object]
"""Called with the panel's new width and height, in columns and rows."""


class Panel:
    """One panel. Open it with `Extension.open_panel` or as a command's answer, `OpenPanel(panel)`.

    Handlers run one after another, in the order of the keys.
    """

    def __init__(
        self,
        panel_id: str,
        title: str = "",
        lines: Sequence[str] = (),
        *,
        footer: str = "",
        on_key: KeyHandler | None = None,
        on_resize: ResizeHandler | None = None,
        on_close: Callable[[], object] | None = None,
    ) -> None:
        self.id = panel_id
        self.title = title
        self.lines = list(lines)
        self.footer = footer
        self.on_key = on_key
        self.on_resize = on_resize
        self.on_close = on_close
        self.lane: deque[FunctionRun] = deque()
        self._pipe: HostPipe | None = None

    def render(
        self, lines: Sequence[str] | None = None, *, title: str | None = None, footer: str | None = None
    ) -> None:
        """Change the given parts. Before the panel is open, this sets its initial contents."""
        self.lines = self.lines if lines is None else list(lines)
        self.title = self.title if title is None else title
        self.footer = self.footer if footer is None else footer
        if self._pipe is not None:
            frame = self.content()
            # `open_panel` and `panel_render` use different names for the id.
            frame["panel_id"] = frame.pop("id")
            self._pipe.send({"type": "panel_render", **frame})

    def close(self) -> None:
        """Close the panel if it is open. Does not call `on_close`, which is for closing by the user."""
        if self._pipe is not None:
            self._pipe.send({"type": "panel_close", "panel_id": self.id})
            self._pipe = None

    def content(self) -> Frame:
        """Return the contents in the format of frames."""
        return {"id": self.id, "title": self.title, "lines": self.lines, "footer": self.footer}

    def opened(self, pipe: HostPipe) -> None:
        """Called by the SDK when the panel appears."""
        self._pipe = pipe

    def closed(self) -> None:
        """Called by the SDK when the user has closed the panel."""
        self._pipe = None


class OpenPanel(NamedTuple):
    """Return value of a command: open a panel."""

    panel: Panel
