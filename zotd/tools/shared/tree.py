"""The files of a directory tree, without what git ignores, and the glob patterns that choose among them."""

import fnmatch
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pathspec import GitIgnoreSpec
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

WALK_ENTRIES = 200_000
"""Most directory entries that one walk looks at: a second or two."""

ALTERNATIVES = 100
"""Most patterns that the braces of one glob may stand for."""


class BadGlobError(ValueError):
    """A glob pattern that means nothing; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Rules:
    """One `.gitignore`, and how a path relative to the walk's root becomes one relative to it."""

    spec: GitIgnoreSpec
    lead: str = ""
    """Put before the path; of a file above the root."""
    skip: int = 0
    """Characters to take away; of a file below the root."""

    def verdict(self, path: str) -> bool | None:
        """True: ignored; False: brought back by a `!` pattern; None: not mentioned."""
        return self.spec.check_file(self.lead + path[self.skip :]).include


class Tree:
    """Walks a directory: iterate for files and symbolic links, relative to `root`, ordered by the parts of their path.

    Symbolic links are not followed, directories that cannot be read are left out, `.git` always. A root that is itself
    ignored was named on purpose: then only `.gitignore` files below it count.
    """

    def __init__(self, root: Path, *, hidden: bool, abandoned: threading.Event) -> None:
        """`hidden`: names with a leading dot too. Iteration ends early when `abandoned` is set."""
        self.cut = False
        """The walk ended at `WALK_ENTRIES`."""
        self._root = root
        self._hidden = hidden
        self._abandoned = abandoned
        self._seen = 0

    def __iter__(self) -> Iterator[str]:
        # A stack instead of recursion: a path may have two thousand parts.
        stack: list[tuple[str, tuple[Rules, ...]]] = [("", _rules_above(self._root))]
        while stack:
            path, rules = stack.pop()
            if path and not path.endswith("/"):
                yield path
            elif self._abandoned.is_set() or self.cut:
                return
            else:
                rules = (*_rules_in(self._root / path, skip=len(path)), *rules)
                stack += [(child, rules) for child in self._children(path, rules)]

    def _children(self, folder: str, rules: tuple[Rules, ...]) -> list[str]:
        """Paths of what is in a folder and not ignored, last one first; those of folders end with a slash."""
        try:
            with os.scandir(self._root / folder) as entries:
                listed = list(islice(entries, WALK_ENTRIES - self._seen))
        except OSError:
            return []
        self._seen += len(listed)
        self.cut = self._seen >= WALK_ENTRIES
        listed.sort(key=lambda entry: entry.name, reverse=True)
        paths = [folder + _shape(entry) for entry in listed if self._is_wanted(entry.name)]
        return [path for path in paths if not _is_ignored(path, rules)]

    def _is_wanted(self, name: str) -> bool:
        return name != ".git" and (self._hidden or not name.startswith("."))


def repository_of(path: Path) -> Path | None:
    """The root of the git repository that `path` is in."""
    return next((folder for folder in (path, *path.parents) if os.path.lexists(folder / ".git")), None)


def glob_matcher(pattern: str) -> Callable[[str], bool]:
    """Tells whether a relative path matches: `*` `?` `[a-z]` within a name, `**` any number of folders, `{a,b}`.

    Names are matched one by one with `fnmatch`, whose expressions cannot run away on a hostile pattern. Braces that
    stand for too many patterns raise `BadGlobError`.
    """
    matchers = [[_name_matcher(part) for part in plain.split("/")] for plain in _without_braces(pattern)]

    def matches(path: str) -> bool:
        names = path.split("/")
        return any(_matches(parts, names) for parts in matchers)

    return matches


_Part = Callable[[str], object] | None
"""Matches one name; None is `**`."""


def _name_matcher(part: str) -> _Part:
    return None if part == "**" else re.compile(fnmatch.translate(part)).match


def _matches(parts: list[_Part], names: list[str]) -> bool:
    """Follow all positions in the pattern that the names so far can stand for, at once: no backtracking."""
    places = _after_stars({0}, parts)
    for name in names:
        reached: set[int] = set()
        for place in places:
            part = parts[place] if place < len(parts) else _nothing
            if part is None:
                reached.add(place)
            elif part(name):
                reached.add(place + 1)
        places = _after_stars(reached, parts)
    return len(parts) in places


def _nothing(_: str) -> None:
    """Matches no name: the pattern has ended."""


def _after_stars(places: set[int], parts: list[_Part]) -> set[int]:
    """`places`, and those behind each `**`, which may stand for no folder at all."""
    for place in tuple(places):
        following = place
        while following < len(parts) and parts[following] is None:
            following += 1
            places.add(following)
    return places


_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")


def _without_braces(pattern: str) -> list[str]:
    """The patterns that `{a,b}` stands for, innermost braces first; braces without a comma are ordinary."""
    plain: list[str] = []
    waiting = [pattern]
    while waiting:
        current = waiting.pop()
        braces = _BRACES.search(current)
        if braces is None:
            plain.append(current)
        else:
            choices = braces[1].split(",")
            waiting += [current[: braces.start()] + choice + current[braces.end() :] for choice in choices]
        if len(plain) + len(waiting) > ALTERNATIVES:
            raise BadGlobError(f"the braces of {pattern} stand for more than {ALTERNATIVES} patterns; use fewer")
    return plain


def _is_ignored(path: str, rules: tuple[Rules, ...]) -> bool:
    """The deepest `.gitignore` that mentions a path decides (gitignore(5))."""
    for rule in rules:
        verdict = rule.verdict(path)
        if verdict is not None:
            return verdict
    return False


def _shape(entry: os.DirEntry[str]) -> str:
    return f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name


def _rules_above(root: Path) -> tuple[Rules, ...]:
    """The rules of the folders between `root` and the top of its repository, deepest first."""
    top = repository_of(root)
    rules: list[Rules] = []
    folder, lead = root, ""
    while top and folder != top:
        folder, lead = folder.parent, f"{folder.name}/{lead}"
        rules += _rules_in(folder, lead=lead)
    return () if _is_ignored("", tuple(rules)) else tuple(rules)


def _rules_in(folder: Path, *, lead: str = "", skip: int = 0) -> tuple[Rules, ...]:
    path = folder / ".gitignore"
    try:
        if not path.is_file():  # opening a FIFO would wait for a writer
            return ()
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return ()
    return (Rules(GitIgnoreSpec(_patterns(lines)), lead, skip),)


def _patterns(lines: list[str]) -> Iterator[GitIgnoreSpecPattern]:
    """One bad line does not cost the others."""
    for line in filter(None, lines):
        with suppress(ValueError, re.error):
            yield GitIgnoreSpecPattern(line)
