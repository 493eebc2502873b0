"""Tool calls as editors show them: a kind, a title, the files, the changes. Computed from what the events say."""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from zotd.bridges.acp.frames import Diff, Location, TextBlock, TextContent
from zotd.wire.content import Image, Text

TITLE_CHARS = 200
"""Of a title: one line of an editor's panel."""

OUTPUT_CHARS = 64 * 1024
"""Of what a call has said, as far as an editor gets it: more than any tool of ours says, and less than would stall one."""

_KINDS = {
    "read": "read",
    "skill": "read",
    "write": "edit",
    "edit": "edit",
    "bash": "execute",
    "grep": "search",
    "glob": "search",
}
"""Of our own tools."""

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
"""What a word in the name of somebody else's tool tells. It chooses an icon, nothing else, so a guess does no harm."""

_SUBJECTS = {"bash": "command", "grep": "pattern", "glob": "pattern", "skill": "name"}
"""The argument that a title shows, where it is not the path."""

_PATHLESS = frozenset({"bash", "skill"})

_WORD = re.compile(r"[a-z]+|[A-Z][a-z]*")

_HUNK = re.compile(r"^@@ [^@]* @@.*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PathResolver:
    """What relative paths of a session mean."""

    cwd: str
    home: str = ""
    """What `~` stands for; empty: nothing."""

    def located(self, path: str) -> str:
        """The absolute path; links are not followed, because nothing here looks at files."""
        if self.home and (path == "~" or path.startswith("~/")):
            path = self.home + path[1:]
        return posixpath.normpath(posixpath.join(self.cwd, path))


def kind_of(name: str) -> str:
    """One of ACP's kinds."""
    if name in _KINDS:
        return _KINDS[name]
    words = (word.lower() for word in _WORD.findall(name))
    return next((_WORDS[word] for word in words if word in _WORDS), "other")


def title_of(name: str, args: Mapping[str, object]) -> str:
    """The tool and what it is about, on one line."""
    subject = args.get(_SUBJECTS.get(name, "path"))
    if not isinstance(subject, str) or not subject.strip():
        return name
    line = " ".join(f"{name} {subject[:TITLE_CHARS]}".split())
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1] + "…"


def locations_of(name: str, args: Mapping[str, object], place: PathResolver) -> list[Location]:
    """The file that the call names, and for `read` the line at which it begins."""
    path = args.get("path")
    if name in _PATHLESS or not isinstance(path, str) or not path:
        return []
    offset = args.get("offset") if name == "read" else None
    line = offset if isinstance(offset, int) and offset > 0 else None
    return [Location(place.located(path), line)]


def diffs_of(
    name: str, args: Mapping[str, object], place: PathResolver, preview: str | None = None
) -> list[TextContent | Diff]:
    """What `write` and `edit` change.

    With the `preview` of a question the lines that `write` replaces are known; without it, its content is all that is.
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
    """The old and the new lines of each hunk of a unified diff; none in what is no diff."""
    for piece in _HUNK.split(diff)[1:]:
        lines = [line for line in piece.removeprefix("\n").split("\n") if line]
        old = [line[1:] for line in lines if line[0] in " -"]
        new = [line[1:] for line in lines if line[0] in " +"]
        yield "\n".join(old), "\n".join(new)


def said(content: Sequence[Text | Image]) -> list[TextContent]:
    """The output of a call; of images their size, for events do not carry their data."""
    return [TextContent(TextBlock(_cut(_words(block)))) for block in content]


def output(text: str) -> list[TextContent]:
    """What a call has said so far: the newest of it."""
    return [TextContent(TextBlock(text[-OUTPUT_CHARS:]))]


def _words(block: Text | Image) -> str:
    return block.text if isinstance(block, Text) else f"[image, {block.mime_type}, {block.bytes:,} bytes]"


def _cut(text: str) -> str:
    rest = len(text) - OUTPUT_CHARS
    return text if rest <= 0 else f"{text[:OUTPUT_CHARS]}\n[{rest:,} more characters are not shown]"


def _replacements(edits: object) -> Iterator[tuple[str, str]]:
    """Of arguments that a model has written: whatever has the right shape."""
    for edit in edits if isinstance(edits, list) else []:
        if isinstance(edit, dict):
            old, new = edit.get("oldText"), edit.get("newText")
            if isinstance(old, str) and isinstance(new, str):
                yield old, new
