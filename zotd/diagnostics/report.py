"""What a model reads of the errors that its edit has caused."""

import os
from collections.abc import Iterable, Sequence

from zotd.diagnostics.error_book import FoundError
from zotd.sanitize import escaped

MOST_LINES = 20
"""Errors that are told of one edit."""


def sentences(errors: Sequence[FoundError], late: Iterable[str], *, cwd: str, wait_s: float) -> str:
    """Return the lines for the result of an edit; empty if there is nothing to say.

    `late`: servers that have not answered within `wait_s`.
    """
    lines = []
    if errors:
        count = f"{len(errors)} new errors" if len(errors) > 1 else "1 new error"
        lines += [f"{count} after this change:", *(_line(error, cwd) for error in errors[:MOST_LINES])]
    if len(errors) > MOST_LINES:
        lines.append(f"and {len(errors) - MOST_LINES} more")
    if names := " and ".join(late):
        lines.append(
            f"[{names} did not answer within {wait_s:g} s; errors that are found later come with the next edit]"
        )
    return "\n".join(lines)


def _line(error: FoundError, cwd: str) -> str:
    inside = error.path.startswith(cwd.rstrip("/") + "/")
    path = escaped(os.path.relpath(error.path, cwd) if inside else error.path)
    return f"{path}:{error.line}:{error.column}: {error.message} ({error.source})"
