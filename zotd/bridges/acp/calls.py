"""Describes tool calls for editors: kind, title, files and changes, derived from the events."""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from zotd.wire.acp import Diff, Location, TextBlock, TextContent
from zotd.wire.content import Image, Text

TITLE_CHARS = 200
"""Longest title, which is one line of an editor's panel."""

OUTPUT_CHARS = 64 * 1024
"""Longest output of a call for an editor: more than any built-in tool returns, and little enough not to stall the editor."""

_KINDS = {
    "read": "read",
    "skill": "read",
    "write": "edit",
    "edit": "edit",
    "bash": "execute",
    "grep": "search",
    "glob": "search",
    "plan": "think",
    "network": "fetch",
    "files": "edit",
}
"""Kinds of the built-in tools, and of questions about hosts and about files outside of a jail."""

_WORDS = {
    **dict.fromkeys(("read", "get", "show", "cat", "view", "open"), "read"),
    **dict.fromkeys(("write", "edit", "patch", "replace", "create", "update", "insert"), "edit"),
    **dict.fromkeys(("delete", "remove"), "delete"),
    **dict.fromkeys(("move", "rename"), "move"),
    **dict.fromkeys(("search", "find", "grep", "list", "query"), "search"),
    **dict.fromkeys(("run", "exec", "execute", "shell", "terminal"), "execute"),
    **dict.fromkeys(("fetch", "download", "http", "browse"), "fetch"),
    **dict.fromkeys(("think", "reason", "plan"), "think"),
}
"""Kinds by a word in the name of another tool. A guess is harmless, because the kind only selects an icon."""

_SUBJECTS = {
    "bash": "command",
    "grep": "pattern",
    "glob": "pattern",
    "skill": "name",
    "network": "host",
    "files": "paths",
}
"""The argument that is shown in the title, if that is not `path`."""

_PATHLESS = frozenset({"bash", "skill"})

_WORD = re.compile(r"[a-z]+|[A-Z][a-z]*")

_HUNK = re.compile(r"^@@ [^@]* @@.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PathResolver:
    """Resolves relative paths of a session."""

    cwd: str
    home: str = ""
    """Replaces `~`; empty if unknown, as for a remote daemon."""

    def located(self, path: str) -> str:
        """Return the absolute path. Links are not followed, because the files may be on another machine."""
        if self.home and (path == "~" or path.startswith("~/")):
            path = self.home + path[1:]
        # The paths are those of the daemon, which always runs on a POSIX system.
        return posixpath.normpath(posixpath.join(self.cwd, path))


def kind_of(name: str) -> str:
    """Return the ACP kind of a tool."""
    if name in _KINDS:
        return _KINDS[name]
    words = (word.lower() for word in _WORD.findall(name))
    return next((_WORDS[word] for word in words if word in _WORDS), "other")


def title_of(name: str, args: Mapping[str, object]) -> str:
    """Return the tool and its main argument on one line."""
    subject = args.get(_SUBJECTS.get(name, "path"))
    if isinstance(subject, list):
        subject = ", ".join(map(str, subject))
    if not isinstance(subject, str) or not subject.strip():
        return name
    # On one line: a command of bash may have many.
    line = " ".join(f"{name} {subject[:TITLE_CHARS]}".split())
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1] + "…"


def locations_of(name: str, args: Mapping[str, object], place: PathResolver) -> list[Location]:
    """Return the file that the call names and, for `read`, its first line."""
    path = args.get("path")
    if name in _PATHLESS or not isinstance(path, str) or not path:
        return []
    offset = args.get("offset") if name == "read" else None
    line = offset if isinstance(offset, int) and offset > 0 else None
    return [Location(place.located(path), line)]


def diffs_of(
    name: str, args: Mapping[str, object], place: PathResolver, preview: str | None = None
) -> list[TextContent | Diff]:
    """Return the changes of a `write` or `edit` call.

    The `preview` of a question contains the lines that `write` replaces; without it, only the new content is known.
    """
    path = args.get("path")
    if not isinstance(path, str) or not path:
        return []
    where = place.located(path)
    if name == "edit":
        return [Diff(where, new, old) for old, new in _replacements(args.get("edits"))]
    content = args.get("content")
    if name != "write" or not isinstance(content, str):
        return []
    found = [Diff(where, new, old) for old, new in hunks(preview or "")]
    return [*found] or [Diff(where, content)]


def hunks(diff: str) -> Iterator[tuple[str, str]]:
    """Yield the old and new lines of each hunk of a unified diff; nothing for other text."""
    # The first piece is the header with the file names.
    for piece in _HUNK.split(diff)[1:]:
        lines = [line for line in piece.removeprefix("\n").split("\n") if line]
        old = [line[1:] for line in lines if line[0] in " -"]
        new = [line[1:] for line in lines if line[0] in " +"]
        yield "\n".join(old), "\n".join(new)


def said(content: Sequence[Text | Image]) -> list[TextContent]:
    """Return the output of a call. Images are represented by their size, because events do not contain their data."""
    return [TextContent(TextBlock(_cut(_words(block)))) for block in content]


def output(text: str) -> list[TextContent]:
    """Return the newest part of a running call's output."""
    return [TextContent(TextBlock(text[-OUTPUT_CHARS:]))]


def _words(block: Text | Image) -> str:
    return block.text if isinstance(block, Text) else f"[image, {block.mime_type}, {block.bytes:,} bytes]"


def _cut(text: str) -> str:
    rest = len(text) - OUTPUT_CHARS
    return text if rest <= 0 else f"{text[:OUTPUT_CHARS]}\n[{rest:,} more characters are not shown]"


def _replacements(edits: object) -> Iterator[tuple[str, str]]:
    """Yield the valid edits in the arguments of a model, which may have any shape."""
    for edit in edits if isinstance(edits, list) else []:
        if isinstance(edit, dict):
            old, new = edit.get("oldText"), edit.get("newText")
            if isinstance(old, str) and isinstance(new, str):
                yield old, new
