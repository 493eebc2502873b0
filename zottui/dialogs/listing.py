"""A list to choose from: filtered by what is typed, with one entry selected."""

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
"""A label is not made narrower than this for the sake of what stands behind it."""

PAGE = 8
"""Entries that page up and page down pass by."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a list. Its texts may be anybody's: they are cleaned when they are shown."""

    key: str
    """What it is, for the program; the selection stays with it when the list changes."""
    label: str
    notes: tuple[str, ...] = ()
    """Columns behind the label; the last is the first to go when there is no room."""
    mark: str = ""
    """A word in front of it."""
    role: TextRole = TextRole.MUTED
    """Of that word."""
    depth: int = 0
    """How far it is indented."""


class Listing:
    """The entries, the filter and the selection."""

    def __init__(self, entries: Sequence[Entry] = (), *, selected: str = "") -> None:
        """Begins with the entry whose key is `selected`, or else the first."""
        self.filter = Line()
        self._entries = tuple(entries)
        self._selected = selected

    def replace(self, entries: Sequence[Entry]) -> None:
        """Other entries; the selected one stays selected if it is still there, or else its neighbour is."""
        before = self._place()
        self._entries = tuple(entries)
        shown = self.shown()
        if shown and all(entry.key != self._selected for entry in shown):
            self._selected = shown[min(before, len(shown) - 1)].key

    def shown(self) -> list[Entry]:
        """The entries that have all words of the filter, in their order."""
        words = self.filter.text.lower().split()
        return [entry for entry in self._entries if all(word in _searched(entry) for word in words)]

    @property
    def selected(self) -> Entry | None:
        """The entry that is meant; None when none is shown."""
        shown = self.shown()
        return shown[self._place()] if shown else None

    def key(self, name: str, text: str) -> bool:
        """Take a key that moves the selection or changes the filter; False for any other."""
        steps = {"up": -1, "down": 1, "pageup": -PAGE, "pagedown": PAGE}
        key = named(name)
        if key in steps:
            self._move(steps[key])
            return True
        selected = self.selected  # of what is typed next, it stays selected as long as it is shown
        if not self.filter.key(name, text):
            return False
        self._selected = selected.key if selected else ""
        return True

    def rows(self, width: int, height: int) -> list[Row]:
        """The entries around the selected one; at most `height`."""
        shown, place = self.shown(), self._place()
        first = max(0, min(place - height // 2, len(shown) - height))
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
    """Of the columns of what is shown. Notes are dropped from the right until the labels have room."""
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
