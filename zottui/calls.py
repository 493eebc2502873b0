"""What is known of a tool call by its name and arguments, wherever one is named: while it runs, in a question, in its card."""

from collections.abc import Mapping

from zottui.sanitize import harmless

CHANGING = frozenset({"edit", "write"})
"""Tools of ours that change files; the preview of such a call is a diff."""

SUBJECT_CHARS = 500
"""More than fits on a line; a script may have a thousand times as many, and live rows are made anew in each frame."""

_SUBJECTS = {"bash": "command", "read": "path", "write": "path", "edit": "path", "grep": "pattern", "glob": "pattern"}
"""The argument that says what a call is about, by tool."""


def subject(name: str, args: Mapping[str, object]) -> str:
    """What a call is about, harmless and on one line: its command, path or pattern; of other tools all that is short.

    Empty when no argument says it. At most `SUBJECT_CHARS` characters of what was written are looked at.
    """
    said = args.get(_SUBJECTS.get(name, ""))
    if not isinstance(said, str):
        said = " ".join(str(value)[:SUBJECT_CHARS] for value in args.values() if isinstance(value, str | int | float))
    elif name in {"grep", "glob"} and isinstance(where := args.get("path"), str) and where not in {"", "."}:
        said = f"{said} in {where}"
    return " ".join(harmless(said[:SUBJECT_CHARS]).split())
