"""Runs the user's own editor on a text."""

import os
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path

from zotd.template import foreground
from zottui.ui_context import TerminalLender

EDITORS = ("VISUAL", "EDITOR")
"""Environment variables that name the editor, in order of precedence."""

FALLBACK = "vi"
"""POSIX requires it on every system."""


async def edited(ui: TerminalLender, text: str, *, suffix: str = ".txt") -> str:
    """Open `text` in the user's editor and return the edited text; unchanged if the editor fails, as with `:cq` in vi.

    The text is in a temporary file with this `suffix`, by which editors detect the language; only the user can read it.
    There is no timeout. If the waiting task is cancelled, the editor keeps running and its text is not read. Raises
    `OSError` if the editor cannot be started.
    """
    descriptor, name = tempfile.mkstemp(prefix="zot-", suffix=suffix)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: ASYNC230  (short)
            file.write(text)
        async with ui.suspended():
            failed = await foreground.run([*command(ui.env), name], ui.env)
        # Read by name and not by descriptor: editors replace the file when they save.
        return text if failed else Path(name).read_text(encoding="utf-8", errors="replace")  # noqa: ASYNC240  (short)
    finally:
        os.unlink(name)


def command(env: Mapping[str, str]) -> list[str]:
    """Return the editor's command line without the file. Raises `OSError` if a quote in the variable is not closed."""
    named = next((env[name] for name in EDITORS if env.get(name, "").strip()), FALLBACK)
    try:
        return shlex.split(named) or [FALLBACK]
    except ValueError as error:
        raise OSError(f"{named} cannot be run as an editor: {error}") from error
