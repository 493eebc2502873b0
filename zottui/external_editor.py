"""The user's own editor, for what does not fit on a line."""

import os
import shlex
import tempfile
from asyncio import create_subprocess_exec
from collections.abc import Mapping
from pathlib import Path

from zottui.ui_context import UiContext

EDITORS = ("VISUAL", "EDITOR")
"""Variables that name it, the first that is set."""

FALLBACK = "vi"
"""POSIX has it."""


async def edited(desk: UiContext, text: str, *, suffix: str = ".txt") -> str:
    """`text` as the user leaves it; unchanged when the editor ends with an error, as `:cq` does in vi.

    `suffix`: of the file that it is in meanwhile, which only the user can read; by it editors know the language.
    No timeout: people think. Cancelled, the editor stays, and what it writes is not read. Raises `OSError`: there is
    no such editor.
    """
    descriptor, name = tempfile.mkstemp(prefix="zot-", suffix=suffix)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: ASYNC230  (short)
            file.write(text)
        async with desk.suspended():
            editor = await create_subprocess_exec(*command(desk.env), name, env=dict(desk.env))
            failed = await editor.wait()
        return text if failed else Path(name).read_text(encoding="utf-8", errors="replace")  # noqa: ASYNC240  (short)
    finally:
        os.unlink(name)


def command(env: Mapping[str, str]) -> list[str]:
    """The editor's command line, without the file. Raises `OSError`: a quote in the variable is not closed."""
    named = next((env[name] for name in EDITORS if env.get(name, "").strip()), FALLBACK)
    try:
        return shlex.split(named) or [FALLBACK]
    except ValueError as error:
        raise OSError(f"{named} cannot be run as an editor: {error}") from error
