"""Diffs of files: changed lines with their numbers, and the changed words within a line."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby

from zotd.client.columns import clipped
from zottui.sanitize import harmless
from zottui.theme import TextRole, Theme

COMPARED_LINES = 2_000
"""Longer texts are shown as removed and added without a comparison, which takes quadratic time: 1 s for twice as many
lines."""

COMPARED_WORDS = 200
"""The same limit for the words of a line."""

SIMILAR = 0.5
"""Lines less similar than this are not compared by words: nearly every word would be marked."""

CONTEXT_LINES = 3
"""Unchanged lines around a change in a diff."""

KEPT, ADDED, REMOVED, GAP = " ", "+", "-", "…"
"""Kinds of diff lines: in both texts, only in the new, only in the old, left out."""

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_WORD = re.compile(r"\w+|\s+|.")


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a diff."""

    sign: str
    """`KEPT`, `ADDED`, `REMOVED` or `GAP`."""
    text: str = ""
    number: int | None = None
    """Line number in its text, from 1; None if unknown."""


def unified(text: str) -> list[DiffLine]:
    """Parse a unified diff that may have other text around it; empty if there is no hunk."""
    changes: list[DiffLine] = []
    olds = news = old = new = 0
    for line in text.split("\n"):
        # Outside of a hunk only its header counts. Inside, the header's line counts decide and not the prefixes: a removed
        # line "-- x" looks like the header of a file.
        if olds <= 0 and news <= 0:
            found = _HUNK.match(line)
            if found:
                changes += [DiffLine(GAP)] if changes else []
                old, olds, new, news = (int(number or 1) for number in found.groups())
        elif line.startswith(REMOVED):
            changes.append(DiffLine(REMOVED, line[1:], old))
            old, olds = old + 1, olds - 1
        elif line.startswith(ADDED):
            changes.append(DiffLine(ADDED, line[1:], new))
            new, news = new + 1, news - 1
        elif line.startswith(KEPT) or not line:  # some tools strip the trailing space of an empty context line
            changes.append(DiffLine(KEPT, line[1:], new))
            old, olds, new, news = old + 1, olds - 1, new + 1, news - 1
        elif not line.startswith("\\"):  # "\ No newline at end of file" is no line of either text
            changes.append(DiffLine(GAP, line))
            olds = news = 0
    return changes


def between(before: str, after: str) -> list[DiffLine]:
    """Compare two texts. The lines have no numbers, since the texts may be parts of a file."""
    from difflib import SequenceMatcher  # noqa: PLC0415  (the first paint need not wait for it)

    old, new = before.split("\n"), after.split("\n")
    if max(len(old), len(new)) > COMPARED_LINES:
        return [*(DiffLine(REMOVED, line) for line in old), *(DiffLine(ADDED, line) for line in new)]
    changes: list[DiffLine] = []
    for group in SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(CONTEXT_LINES):
        changes += [DiffLine(GAP)] if changes else []
        for kind, begin, end, new_begin, new_end in group:
            if kind == "equal":
                changes += [DiffLine(KEPT, line) for line in old[begin:end]]
                continue
            changes += [DiffLine(REMOVED, line) for line in old[begin:end]]
            changes += [DiffLine(ADDED, line) for line in new[new_begin:new_end]]
    return changes


def count(changes: Iterable[DiffLine]) -> tuple[int, int]:
    """Return the number of added and of removed lines."""
    signs = [change.sign for change in changes]
    return signs.count(ADDED), signs.count(REMOVED)


def focused(changes: Sequence[DiffLine], context: int = 1) -> list[DiffLine]:
    """Return the same diff with at most `context` unchanged lines around each change."""
    wanted = {
        near
        for i, change in enumerate(changes)
        if change.sign in {ADDED, REMOVED}
        for near in range(i - context, i + context + 1)
    }
    kept: list[DiffLine] = []
    is_open = False
    for i, change in enumerate(changes):
        is_kept = i in wanted and change.sign != GAP
        if is_kept and kept and not is_open:
            kept.append(DiffLine(GAP))
        if is_kept:
            kept.append(change)
        is_open = is_kept
    return kept


def diff_lines(changes: Sequence[DiffLine], theme: Theme, width: int) -> list[str]:
    """Return one painted line of at most `width` columns for each diff line."""
    numbers = max((len(str(change.number)) for change in changes if change.number), default=0)
    room = width - numbers - 3  # a space after the number, the sign, and a space after it
    lines: list[str] = []
    for change, text in zip(changes, _with_words(changes, theme, room), strict=True):
        number = theme.paint(TextRole.MUTED, f"{change.number or '':>{numbers}} ") if numbers else ""
        lines.append((number + _painted(change.sign, f"{change.sign} ", theme) + text).rstrip(" "))
    return lines


def _with_words(changes: Iterable[DiffLine], theme: Theme, room: int) -> Iterator[str]:
    """Yield the painted text of each line. Removed lines next to added ones are compared with them word by word."""
    runs = [list(run) for _, run in groupby(changes, key=lambda change: change.sign)]
    for before, run, after in zip([[], *runs], runs, [*runs[1:], []], strict=False):
        other: Sequence[DiffLine] = ()
        if run[0].sign == REMOVED and after and after[0].sign == ADDED:
            other = after
        elif run[0].sign == ADDED and before and before[0].sign == REMOVED:
            other = before
        partners = chain((partner.text for partner in other), [None] * len(run))
        for change, partner in zip(run, partners, strict=False):
            text = clipped(harmless(change.text), room)
            yield _compared(change.sign, text, clipped(harmless(partner), room) if partner is not None else None, theme)


def _compared(sign: str, text: str, partner: str | None, theme: Theme) -> str:
    from difflib import SequenceMatcher  # noqa: PLC0415  (the first paint need not wait for it)

    words = _WORD.findall(text)
    others = _WORD.findall(partner or "")
    if partner is None or max(len(words), len(others)) > COMPARED_WORDS:
        return _painted(sign, text, theme)
    # SequenceMatcher is not symmetric: compare old with new for both lines, or their marks would not correspond.
    pair = (words, others) if sign == REMOVED else (others, words)
    matcher = SequenceMatcher(None, *pair, autojunk=False)
    if matcher.ratio() < SIMILAR:
        return _painted(sign, text, theme)
    shown = ""
    for kind, begin, end, new_begin, new_end in matcher.get_opcodes():
        piece = "".join(words[begin:end] if sign == REMOVED else words[new_begin:new_end])
        shown += _painted(sign, piece, theme, is_word=kind != "equal")
    return shown


def _painted(sign: str, text: str, theme: Theme, *, is_word: bool = False) -> str:
    match sign:
        case "+":
            return theme.paint(TextRole.ADDED_WORD if is_word else TextRole.ADDED, text)
        case "-":
            return theme.paint(TextRole.REMOVED_WORD if is_word else TextRole.REMOVED, text)
        case "…":
            return theme.paint(TextRole.MUTED, text)
        case _:
            return text
