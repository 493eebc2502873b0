"""Evaluates `.gitignore` files (gitignore(5)).

Each entry of a walk is judged separately, as in git: an ignored folder is not entered, so no pattern has to match what is
below it. The package `pathspec` judges whole paths instead. That treats `*` with `!*/` wrongly for folders, and a
repository could contain patterns that make its expressions run for hours.
"""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from zotd.tools.shared.globs import Part, matches, parts_of

FILE_BYTES = 256 * 1024
"""Longest part of a `.gitignore` that is read."""


class IgnorePattern(Struct, frozen=True):
    """One line of a `.gitignore`."""

    is_ignored: bool
    """False for a line with `!`, which includes an entry again."""
    only_folders: bool
    parts: Sequence[Part]


class Rules(Struct, frozen=True):
    """One `.gitignore`: its patterns, last one first. Paths are relative to the top of the repository."""

    patterns: Sequence[IgnorePattern]
    depth: int
    """Number of folders between the top and the file."""

    def verdict(self, names: Sequence[str], *, is_folder: bool) -> bool | None:
        """Return whether an entry is ignored; None if no pattern of this file matches."""
        below = names[self.depth :]
        for pattern in self.patterns:
            if (is_folder or not pattern.only_folders) and matches(pattern.parts, below):
                return pattern.is_ignored
        return None


def is_ignored(names: Sequence[str], rules: Sequence[Rules], *, is_folder: bool) -> bool:
    """Return True if an entry is ignored. The first of `rules` (deepest file first) with a match decides."""
    for rule in rules:
        verdict = rule.verdict(names, is_folder=is_folder)
        if verdict is not None:
            return verdict
    return False


def rules_in(folder: Path, depth: int) -> tuple[Rules, ...]:
    """Read the rules of a folder's `.gitignore`; empty if it is missing or unreadable. Blocks."""
    path = folder / ".gitignore"
    try:
        if not path.is_file():  # opening a FIFO would wait for a writer
            return ()
        with path.open("rb") as file:
            lines = os.fsdecode(file.read(FILE_BYTES)).split("\n")
    except OSError:
        return ()
    # Reversed, because the last matching line decides.
    return (Rules([pattern for line in reversed(lines) if (pattern := _pattern(line))], depth),)


def rules_above(names: Sequence[str], top: Path) -> tuple[Rules, ...]:
    """Read the rules from `top` down to the parent of the folder `names`; deepest first. Blocks.

    If they ignore that folder, it was named on purpose, and they are not applied.
    """
    rules: tuple[Rules, ...] = ()
    for depth in range(len(names)):
        rules = (*rules_in(top.joinpath(*names[:depth]), depth), *rules)
        if is_ignored(names[: depth + 1], rules, is_folder=True):
            return ()
    return rules


def _pattern(line: str) -> IgnorePattern | None:
    # Trailing spaces do not count unless they are escaped (gitignore(5)).
    text = re.sub(r"(?<!\\) +$", "", line.removesuffix("\r"))
    if text.startswith("#"):
        return None
    is_negative = text.startswith("!")
    text = text.removeprefix("!")
    only_folders = text.endswith("/")
    text = text.removesuffix("/")
    if not text:
        return None
    # A pattern with a slash is relative to the folder of its file; without one it matches names anywhere below.
    anchored = text.removeprefix("/") if "/" in text else f"**/{text}"
    return IgnorePattern(not is_negative, only_folders, parts_of(_for_fnmatch(anchored)))


def _for_fnmatch(text: str) -> str:
    r"""Translate `\*` and `[^a]`, which `fnmatch` does not know."""
    text = re.sub(r"(?<!\\)\[\^", "[!", text)
    return re.sub(r"\\(.)", lambda match: f"[{match[1]}]" if match[1] in "*?[" else match[1], text)
