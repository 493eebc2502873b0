"""Fields between two `---` lines at the beginning of a Markdown file: the part of YAML that such files use.

---
description: How this project makes a release.
allowed-tools: [Read, "Bash(git log:*)"]
---
The text.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

_FENCED = re.compile(r"---[ \t]*\n(.*?\n)??---[ \t]*(?:\n|\Z)", re.DOTALL)
"""Lazy, so that the first closing line ends the fields; the text may contain such lines too."""

_FIELD = re.compile(r"([\w-]+):(?:[ \t]+(.*))?$")
_IGNORED = re.compile(r"\s*(?:#|$)")


class FrontMatter(Struct, frozen=True):
    """The fields of a file, and the text behind them."""

    values: Mapping[str, str]
    """Each field as a text; the items of a list are joined with blanks."""
    lists: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The items of fields that are lists."""
    unread: Sequence[str] = ()
    """Lines that are no fields."""
    text: str = ""


def parse(source: str) -> FrontMatter | None:
    """Return the fields and the text; None: the file does not begin with fields, or they have no end.

    Nested keys are skipped.
    """
    match = _FENCED.match(source)
    if match is None:
        return None
    values: dict[str, str] = {}
    lists: dict[str, Sequence[str]] = {}
    unread: list[str] = []
    for name, first, more in _entries((match[1] or "").split("\n"), unread):
        values[name] = _value(first, more)
        if (items := _items(first, more)) is not None:
            lists[name] = items
    return FrontMatter(values, lists, unread, source[match.end() :])


def _entries(lines: list[str], unread: list[str]) -> Iterator[tuple[str, str, list[str]]]:
    """Yield name, text behind the name, and the lines below that belong to it."""
    i = 0
    while i < len(lines):
        line = lines[i]
        match = _FIELD.match(line)
        i += 1
        more: list[str] = []
        # YAML allows the items of a list to begin where its key does.
        while i < len(lines) and (not lines[i].strip() or lines[i][0] in " \t" or re.match(r"-\s", lines[i])):
            more.append(lines[i])
            i += 1
        if match:
            yield match[1], (match[2] or "").strip(), more
        elif not _IGNORED.match(line):
            unread.append(line.strip())


def _value(first: str, more: list[str]) -> str:
    """Parse a value: the text after its key and the indented lines below."""
    if re.fullmatch(r"[>|][-+0-9]*", first):
        return _block(more, is_folded=first[0] == ">")
    return _scalar(" ".join([first, *(line.strip() for line in more)]).strip())


def _scalar(whole: str) -> str:
    if whole.startswith('"'):
        try:
            value: object = json.JSONDecoder().raw_decode(whole)[0]  # YAML's common escapes are those of JSON
        except ValueError:
            return whole.strip('"')
        return str(value)
    if whole.startswith("'"):
        return re.sub(r"^'((?:[^']|'')*)'?.*$", r"\1", whole).replace("''", "'")
    return re.sub(r"(?:^|[ \t])#.*$", "", whole).rstrip()


def _block(lines: list[str], *, is_folded: bool) -> str:
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip()]
    text = "\n".join(line[min(indents, default=0) :].rstrip() for line in lines).strip("\n")
    return re.sub(r"(?<!\n)\n(?!\n)", " ", text) if is_folded else text


def _items(first: str, more: list[str]) -> list[str] | None:
    """Return the items of a list, `[a, b]` or one below the other; None: it is none."""
    if first.startswith("["):
        inner = " ".join([first, *(line.strip() for line in more)]).strip()[1:].rpartition("]")[0]
        return [_scalar(item.strip()) for item in split_outside(inner) if item.strip()]
    items = [line.strip() for line in more if line.strip()]
    if first or not items or not all(re.match(r"-(?:\s|$)", item) for item in items):
        return None
    return [_scalar(item[1:].strip()) for item in items]


def split_outside(text: str, separators: str = ",") -> list[str]:
    """Split at separators that are neither in quotes nor in parentheses."""
    found, depth, quote = [""], 0, ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "\"'" and not depth and not found[-1].strip():
            quote = character
        elif character in "()":
            depth = max(depth + (1 if character == "(" else -1), 0)
        elif character in separators and not depth:
            found.append("")
            continue
        found[-1] += character
    return found
