"""Has the user change a text in their editor."""

import asyncio
import os
import shlex
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from zotd.client.errors import ClientError
from zotd.template import foreground

Result = TypeVar("Result")


def edit(text: str, take: Callable[[str], Result], *, name: str, suffix: str) -> Result:
    """Return what `take` makes of the changed text; the user's file is kept when anything fails.

    `name` is the beginning of the file's name. Raises `ClientError`: of `take`, which may also raise ValueError, or the editor has failed.
    """
    descriptor, path = tempfile.mkstemp(prefix=name, suffix=suffix)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    _run_editor(path)
    try:
        taken = take(Path(path).read_text(encoding="utf-8", errors="replace"))
    except (ClientError, ValueError) as error:
        raise ClientError(f"{error}; your text is in {path}") from error
    os.unlink(path)
    return taken


def _run_editor(path: str) -> None:
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        failed = asyncio.run(foreground.run([*shlex.split(editor), path], os.environ))
    except (OSError, ValueError) as error:
        raise ClientError(f"{editor} cannot be run as an editor: {error}") from error
    if failed:
        raise ClientError(f"{editor} failed, so nothing was changed; your text is in {path}")
