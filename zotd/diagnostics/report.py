"""What a model reads of the errors that its edit has caused."""

import os
from collections.abc import Mapping, Sequence

from zotd.diagnostics.error_book import FoundError
from zotd.sanitize import escaped

MOST_LINES = 20
"""Errors that are told of one edit."""

REASON_CHARS = 300
"""Longest reason of a server that has failed; it may have the last line of its output."""


def error_lines(errors: Sequence[FoundError], cwd: str) -> list[str]:
    """Return the lines for the result of an edit that has caused these errors."""
    if not errors:
        return []
    count = f"{len(errors)} new errors" if len(errors) > 1 else "1 new error"
    lines = [f"{count} after this change:", *(_line(error, cwd) for error in errors[:MOST_LINES])]
    if len(errors) > MOST_LINES:
        lines.append(f"and {len(errors) - MOST_LINES} more")
    return lines


def unchecked_lines(failed: Mapping[str, str]) -> list[str]:
    """Return a line for each server that has failed, with its reason: silence would mean that there are no errors."""
    return [f"[{name} has not checked this change: {escaped(why)[:REASON_CHARS]}]" for name, why in failed.items()]


def late_lines(late: Sequence[str], wait_s: float) -> list[str]:
    """Return the line about servers that have not answered within `wait_s`."""
    if not late:
        return []
    names = " and ".join(late)
    return [f"[{names} did not answer within {wait_s:g} s; errors that are found later come with the next edit]"]


def _line(error: FoundError, cwd: str) -> str:
    inside = error.path.startswith(cwd.rstrip("/") + "/")
    path = escaped(os.path.relpath(error.path, cwd) if inside else error.path)
    return f"{path}:{error.line}:{error.column}: {error.message} ({error.source})"
