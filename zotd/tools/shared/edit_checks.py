"""Adds the errors that a change has caused to the result of the call that has made it."""

import os
from pathlib import Path

from zotd.core.ports import ToolContext
from zotd.tools.shared.builtin import in_thread
from zotd.tools.shared.files import replaceable

CHECKED_BYTES = 1024 * 1024
"""Largest content that is read only for the comparison; nothing checks larger files."""


async def content_before(path: Path, context: ToolContext) -> bytes | None:
    """Return the content of a file that is about to be replaced, if its errors will be compared; else None.

    Raises what `replace_file` would raise.
    """
    if context.check_edit is None:
        return None
    return await in_thread(lambda _: replaceable(path, CHECKED_BYTES, context.jail))


async def errors_after(path: Path, before: bytes | None, after: bytes, context: ToolContext) -> str:
    """Return what the result says of errors that the change has caused, to be added to it; empty: nothing."""
    if context.check_edit is None:
        return ""
    real = await in_thread(lambda _: os.path.realpath(path))
    found = await context.check_edit(real, before, after)
    return f"\n\n{found}" if found else ""
