"""Changes of files: lines with their numbers, and in a line the words that are different."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby

from zotd.client.columns import clipped
from zottui.sanitize import harmless
from zottui.theme import TextRole, Theme

COMPARED_LINES = 2_000
"""Texts with more lines are not compared but shown one after the other: the time is quadratic, 1 s for twice as many."""

COMPARED_WORDS = 200
"""The same for the words of a line."""

SIMILAR = 0.5
"""How much of two lines must be the same for their differences to be marked; otherwise all would be marked."""

CONTEXT_LINES = 3
"""Lines around a change that are shown."""

KEPT, ADDED, REMOVED, GAP = " ", "+", "-", "…"
"""What a line is: in both texts, in one of them, or left out."""

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_WORD = re.compile(r"\w+|\s+|.")


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a diff."""

    sign: str
    """`KEPT`, `ADDED`, `REMOVED` or `GAP`."""
    text: str = ""
    number: int | None = None
    """In the text that it is of, from 1; None when that is not known."""


def unified(text: str) -> list[DiffLine]:
    """The changes of a unified diff, which may have other text around it; none when there is no diff in it."""
    changes: list[DiffLine] = []
    olds = news = old = new = 0
    for line in text.split("\n"):
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
        elif line.startswith(KEPT) or not line:
            changes.append(DiffLine(KEPT, line[1:], new))
            old, olds, new, news = old + 1, olds - 1, new + 1, news - 1
        elif not line.startswith("\\"):  # that the last line has no newline
            changes.append(DiffLine(GAP, line))
            olds = news = 0
    return changes


def between(before: str, after: str) -> list[DiffLine]:
    """The changes from one text to the other; without numbers, since the texts may be parts of a file."""
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
    """How many lines come, and how many go."""
    signs = [change.sign for change in changes]
    return signs.count(ADDED), signs.count(REMOVED)


def focused(changes: Sequence[DiffLine], context: int = 1) -> list[DiffLine]:
    """The same with fewer lines around each change."""
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
    """One line for each change, at most `width` columns long."""
    numbers = max((len(str(change.number)) for change in changes if change.number), default=0)
    room = width - numbers - 3
    lines: list[str] = []
    for change, text in zip(changes, _with_words(changes, theme, room), strict=True):
        number = theme.paint(TextRole.MUTED, f"{change.number or '':>{numbers}} ") if numbers else ""
        lines.append((number + _painted(change.sign, f"{change.sign} ", theme) + text).rstrip(" "))
    return lines


def _with_words(changes: Iterable[DiffLine], theme: Theme, room: int) -> Iterator[str]:
    """The text of each change, painted; lines that were changed into others are compared with these."""
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
    # Always the same way round: the matcher does not find the same in the other direction.
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
