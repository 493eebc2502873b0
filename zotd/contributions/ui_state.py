"""What extensions show in one session beside its transcript: notes, panels, segments of the status bar.

It is not recorded: a snapshot holds what is shown at the moment, and live events what changes.
"""

from collections.abc import Sequence

from zotd.ledger.ledger import Ledger
from zotd.wire import events, ext
from zotd.wire.base import encode

MAX_NOTES = 50
"""Kept of one session; an older one goes for a newer one."""

MAX_PANELS = 20
"""Most open panels of a session; another one is refused until one is closed."""

MAX_SEGMENTS = 20
"""Most segments of one extension in the status bar."""

SEGMENT_CHARS = 200

KEY_CHARS = 200
"""Longest id of a panel and key of a segment. A longer one is refused and not cut: cut ids could be equal."""

NOTE_CHARS = 4_000

DISPLAY_CHARS = 200_000
"""Longest answer to a command."""

PANEL_LINES = 500
"""More than any terminal shows at once."""

PANEL_CHARS = 500
"""Longest line of a panel."""

PANEL_BYTES = 48 * 1024
"""Most bytes of a panel's lines as JSON: 200 columns and 60 rows of box drawing. A snapshot, which may not be longer than 4 MiB,
holds every panel of the session."""

LEVELS = ("info", "success", "warn", "error")

Showing = ext.Notify | ext.ClearNotes | ext.OpenPanel | ext.PanelRender | ext.PanelClose | ext.SetStatus
"""Frames that change what is shown."""


class UiState:
    """The notes, panels and segments of one session."""

    def __init__(self, ledger: Ledger) -> None:
        """Changes go to the ledger's subscribers as live events."""
        self._ledger = ledger
        self.notes: Sequence[events.ExtNotify] = ()
        """The notes since the last prompt, oldest first."""
        self._panels: dict[tuple[str, str], events.ExtPanel] = {}
        self._segments: dict[tuple[str, str], events.ExtStatus] = {}

    @property
    def panels(self) -> list[events.ExtPanel]:
        """The open panels, oldest first."""
        return list(self._panels.values())

    @property
    def segments(self) -> list[events.ExtStatus]:
        """The segments of the status bar, oldest first."""
        return list(self._segments.values())

    def owner(self, panel_id: str) -> str | None:
        """The extension whose panel has this id; the newest one's, should there be several."""
        return next((owner for owner, key in reversed(self._panels) if key == panel_id), None)

    def take(self, extension: str, frame: Showing) -> str | None:
        """Show what an extension wants shown; a sentence when it cannot be."""
        match frame:
            case ext.Notify():
                self.note(extension, frame.level if frame.level in LEVELS else "info", frame.message)
            case ext.ClearNotes():
                self._keep([note for note in self.notes if note.extension != extension])
                self._show(events.ExtClearNotes(extension, session=self._ledger.label))
            case ext.SetStatus():
                return self._set_segment(extension, frame)
            case ext.OpenPanel(panel):
                return self.open(extension, panel)
            case ext.PanelRender():
                return self._render(extension, frame)
            case ext.PanelClose():
                self.close(extension, frame.panel_id)
        return None

    def note(self, extension: str, level: str, message: str) -> None:
        """Add a note; the same one again adds nothing."""
        note = events.ExtNotify(extension, level, message[:NOTE_CHARS], session=self._ledger.label)
        if self.notes and self.notes[-1] == note:
            return
        self._keep([*self.notes, note][-MAX_NOTES:])
        self._show(note)

    def display(self, extension: str, text: str) -> None:
        """Show an answer to a command; it is not kept."""
        self._show(events.ExtDisplay(extension, text[:DISPLAY_CHARS], session=self._ledger.label))

    def clear_notes(self) -> None:
        """The next prompt has come, or the transcript begins anew: clients take the notes away themselves."""
        self._keep(())

    def open(self, extension: str, panel: ext.Panel) -> str | None:
        """Open a panel, or draw it anew; a sentence when there are too many, or its id is too long."""
        if len(panel.id) > KEY_CHARS:
            return f"the id of a panel has at most {KEY_CHARS} characters"
        if (extension, panel.id) not in self._panels and len(self._panels) >= MAX_PANELS:
            return f"{MAX_PANELS} panels are open in this session already"
        self._draw(extension, panel)
        return None

    def close(self, extension: str, panel_id: str) -> bool:
        """Close a panel; False when it is not open."""
        if self._panels.pop((extension, panel_id), None) is None:
            return False
        self._show(events.ExtPanelClosed(extension, panel_id, session=self._ledger.label))
        return True

    def clear(self) -> None:
        """Show nothing more."""
        for extension in {note.extension for note in self.notes}:
            self.take(extension, ext.ClearNotes())
        for extension in {owner for owner, _ in (*self._panels, *self._segments)}:
            self.left(extension)

    def left(self, extension: str) -> None:
        """The extension has stopped: close its panels and mark its segments as stale."""
        for owner, panel_id in list(self._panels):
            if owner == extension:
                self.close(owner, panel_id)
        for owner, key in list(self._segments):
            if owner == extension:
                self._set_segment(extension, ext.SetStatus(key))

    def _keep(self, notes: Sequence[events.ExtNotify]) -> None:
        """Replace the notes, and listen for the next prompt while there are any."""
        if notes and not self.notes:
            self._ledger.observers.append(self._committed)
        elif self.notes and not notes:
            self._ledger.observers.remove(self._committed)
        self.notes = notes

    def _committed(self, shown: Sequence[events.Event]) -> None:
        if any(isinstance(event, events.UserMessage) for event in shown):
            self.clear_notes()

    def _set_segment(self, extension: str, frame: ext.SetStatus) -> str | None:
        if len(frame.key) > KEY_CHARS:
            return f"the key of a segment has at most {KEY_CHARS} characters"
        key, text = (extension, frame.key), frame.text[:SEGMENT_CHARS]
        if not text and self._segments.pop(key, None) is None:
            return None
        if text:
            if key not in self._segments and sum(owner == extension for owner, _ in self._segments) >= MAX_SEGMENTS:
                return f"it has {MAX_SEGMENTS} segments in the status bar already"
            self._segments[key] = events.ExtStatus(extension, frame.key, text, session=self._ledger.label)
        self._show(events.ExtStatus(extension, frame.key, text, session=self._ledger.label))
        return None

    def _render(self, extension: str, frame: ext.PanelRender) -> str | None:
        if (extension, frame.panel_id) not in self._panels:
            return f'the panel "{frame.panel_id[:80]}" is not open'
        self._draw(extension, ext.Panel(frame.panel_id, frame.title, frame.lines, frame.footer))
        return None

    def _draw(self, extension: str, panel: ext.Panel) -> None:
        event = events.ExtPanel(
            extension,
            panel.id,
            panel.title[:PANEL_CHARS],
            _fitting(panel.lines),
            panel.footer[:PANEL_CHARS],
            session=self._ledger.label,
        )
        self._panels[extension, panel.id] = event
        self._show(event)

    def _show(self, event: events.Event) -> None:
        if self._ledger.label is not None or isinstance(event, events.STDIO_LIVE):
            self._ledger.live([event])


def _fitting(lines: Sequence[str]) -> list[str]:
    """The first lines of a panel, as many and as much of each as may be shown."""
    fitting: list[str] = []
    room = PANEL_BYTES
    for line in lines[:PANEL_LINES]:
        cut = line[:PANEL_CHARS]
        room -= len(encode(cut)) + 1
        if room < 0:
            break
        fitting.append(cut)
    return fitting
