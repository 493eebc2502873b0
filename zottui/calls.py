"""What a tool call is about, from its name and arguments: for the live rows, approval dialogs and cards."""

from collections.abc import Mapping

from zottui.sanitize import harmless

CHANGING = frozenset({"edit", "write"})
"""Built-in tools that change files. The preview of such a call is a diff."""

SUBJECT_CHARS = 500
"""Most characters of an argument that are examined: more than fits on a line. A script may be a thousand times longer,
and live rows are built again for each frame."""

# The argument that describes a call best, by tool.
_SUBJECTS = {
    "bash": "command",
    "read": "path",
    "write": "path",
    "edit": "path",
    "grep": "pattern",
    "glob": "pattern",
    "fetch": "url",
    "web_search": "query",
    "task": "description",
}


def subject(name: str, args: Mapping[str, object]) -> str:
    """Return what a call is about, sanitized and on one line: its command, path, pattern or URL.

    For other tools, all short arguments. Empty if there are none. Examines at most `SUBJECT_CHARS` characters.
    """
    said = args.get(_SUBJECTS.get(name, ""))
    if not isinstance(said, str):
        said = " ".join(str(value)[:SUBJECT_CHARS] for value in args.values() if isinstance(value, str | int | float))
    # A pattern alone does not tell where it is searched. The working directory is the default and not worth a mention.
    elif name in {"grep", "glob"} and isinstance(where := args.get("path"), str) and where not in {"", "."}:
        said = f"{said} in {where}"
    return " ".join(harmless(said[:SUBJECT_CHARS]).split())
