"""A list with a selected entry, filtered by typed words."""

from collections.abc import Sequence
from dataclasses import dataclass

from zottui.dialogs.keys import named
from zottui.dialogs.line import Line
from zottui.theme import TextRole
from zottui.ui_context import Row
from zottui.widgets.cells import POINTER, cells, clean, cut, fit, padded, piece

GAP = 2
"""Columns between two columns of a list."""

LABEL_CELLS = 24
"""Columns that labels keep before notes are dropped to make room."""

PAGE = 8
"""Entries that page up and page down move by."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a list. Its texts are untrusted: control characters in them are made visible when it is drawn.

    Attributes:
        key: identifies the entry; the selection stays with it when the list changes.
        label: the text of the line.
        notes: columns after the label. The last one is dropped first when there is no room.
        mark: a word before the label, a state for example.
        role: the style of `mark`.
        depth: indentation level.
    """

    key: str
    label: str
    notes: tuple[str, ...] = ()
    mark: str = ""
    role: TextRole = TextRole.MUTED
    depth: int = 0


class Listing:
    """Keeps the entries, the filter and the selection of a dialog, and draws them."""

    def __init__(self, entries: Sequence[Entry] = (), *, selected: str = "") -> None:
        """Select the entry with the key `selected`, or else the first one."""
        self.filter = Line()
        self._entries = tuple(entries)
        self._selected = selected

    def replace(self, entries: Sequence[Entry]) -> None:
        """Replace the entries. If the selected one is gone, select its neighbour."""
        before = self._place()
        self._entries = tuple(entries)
        shown = self.shown()
        if shown and all(entry.key != self._selected for entry in shown):
            self._selected = shown[min(before, len(shown) - 1)].key

    def shown(self) -> list[Entry]:
        """Return the entries that contain all words of the filter, in their order."""
        words = self.filter.text.lower().split()
        return [entry for entry in self._entries if all(word in _searched(entry) for word in words)]

    @property
    def selected(self) -> Entry | None:
        """The selected entry; None if the filter matches nothing."""
        shown = self.shown()
        return shown[self._place()] if shown else None

    def key(self, name: str, text: str) -> bool:
        """Take a key that moves the selection or edits the filter; False for any other key."""
        steps = {"up": -1, "down": 1, "pageup": -PAGE, "pagedown": PAGE}
        key = named(name)
        if key in steps:
            self._move(steps[key])
            return True
        selected = self.selected  # as shown before the filter changes; it stays selected while the filter matches it
        if not self.filter.key(name, text):
            return False
        self._selected = selected.key if selected else ""
        return True

    def rows(self, width: int, height: int) -> list[Row]:
        """Return at most `height` entries around the selected one."""
        shown, place = self.shown(), self._place()
        first = max(0, min(place - height // 2, len(shown) - height))  # keeps the selected entry in the middle
        window = shown[first : first + max(height, 0)]
        widths = _widths(window, width)
        return [_row(entry, widths, width, is_selected=first + n == place) for n, entry in enumerate(window)]

    def _place(self) -> int:
        return next((n for n, entry in enumerate(self.shown()) if entry.key == self._selected), 0)

    def _move(self, by: int) -> None:
        shown = self.shown()
        if shown:
            self._selected = shown[max(0, min(self._place() + by, len(shown) - 1))].key


def _searched(entry: Entry) -> str:
    return " ".join([entry.mark, entry.label, *entry.notes]).lower()


@dataclass(frozen=True, slots=True)
class _Widths:
    mark: int
    label: int
    notes: tuple[int, ...]


def _widths(entries: Sequence[Entry], width: int) -> _Widths:
    """Return the column widths of the visible entries. Notes are dropped from the right until the labels have room."""
    mark = max((cells(clean(entry.mark)) + GAP for entry in entries if entry.mark), default=0)
    count = max((len(entry.notes) for entry in entries), default=0)
    notes = [
        max((cells(clean(entry.notes[n])) for entry in entries if n < len(entry.notes)), default=0)
        for n in range(count)
    ]
    wanted = max((cells(clean(entry.label)) + entry.depth * GAP for entry in entries), default=0)
    room = width - GAP - mark
    while notes and room - sum(notes) - GAP * len(notes) < min(wanted, LABEL_CELLS):
        notes.pop()
    return _Widths(mark, min(wanted, room - sum(notes) - GAP * len(notes)), tuple(notes))


def _row(entry: Entry, widths: _Widths, width: int, *, is_selected: bool) -> Row:
    row = [piece(TextRole.ACCENT, f"{POINTER} " if is_selected else "  ")]
    if widths.mark:
        row.append(piece(entry.role, padded(clean(entry.mark), widths.mark)))
    indent = " " * (GAP * entry.depth)
    label = padded(indent + clean(entry.label), widths.label) if entry.notes else indent + clean(entry.label)
    row.append(piece(TextRole.SELECTED if is_selected else TextRole.TEXT, cut(label, max(widths.label, 0))))
    for note, taken in zip(entry.notes, widths.notes, strict=False):
        row.append(piece(TextRole.MUTED, " " * GAP + padded(clean(note), taken)))
    row[-1] = (row[-1][0], row[-1][1].rstrip())
    return fit(row, width)
