"""Files that are open in an editor: reads changes that are not saved, and writes through the editor.

    read     disk, checked by the jail ──> editor ──> its text if that is not what the disk has
    write    disk, checked by the jail ──> editor ──> disk, unless the editor has saved something

The disk decides in the end, because commands, checkpoints and other clients see nothing else: an editor that leaves in the
middle, does not answer or does not save changes nothing about what a call has done.
"""

import asyncio
import os
import time
from pathlib import Path

from msgspec import Struct

from zotd.core.editor_files import EditorFiles
from zotd.core.ports import ToolContext
from zotd.tools.shared.builtin import in_thread
from zotd.tools.shared.files import open_regular, replace_file, replaceable

EDITOR_BYTES = 512 * 1024
"""Largest file that an editor is asked about. It goes through the daemon's events, of which a client may have 2 MiB waiting."""

NOTICE_S = 2.0
"""How long an editor may take to notice that a file has changed; until then what it has is asked for again."""

UNSAVED = "has changes that are not saved in the editor, which are part of this; commands and grep see the saved file"
"""Continues the name of a file."""


async def unsaved(path: Path, context: ToolContext) -> bytes | None:
    """Return the content of a file in the editor; None if that has no other than the disk.

    Raises what `open_regular` raises.
    """
    if context.editor is None:
        return None
    disk = await in_thread(lambda _: _file(path, context))
    text = await _other(disk, context.editor)
    if text is not None and (wait_s := NOTICE_S - disk.age_s) > 0:
        # A command may have changed the file a moment ago.
        await asyncio.sleep(wait_s)
        disk = await in_thread(lambda _: _file(path, context))
        text = await _other(disk, context.editor)
    if text is None:
        return None
    found = text.encode().replace(b"\r\n", b"\n")
    return found.replace(b"\n", b"\r\n") if b"\r\n" in disk.data else found


async def write_through(path: Path, data: bytes, context: ToolContext) -> bool:
    """Replace the content of a file like `replace_file`, through the editor if there is one; return True if it existed."""
    editor, jail, text = context.editor, context.jail, _plain(data)
    if editor is None or text is None or len(data) > EDITOR_BYTES:
        return await in_thread(lambda _: replace_file(path, data, jail))
    real, before = await in_thread(lambda _: (os.path.realpath(path), replaceable(path, EDITOR_BYTES, jail)))
    if before is not None and await editor.write(real, text):
        after = await in_thread(lambda _: replaceable(path, EDITOR_BYTES, jail))
        saved = None if after is None or after == before else _plain(after)
        # It may have saved another text, such as a formatted one; that is what the person wants.
        if saved is not None and (after == data or saved != text):
            editor.agreed(real, saved)
            return True
        editor.agreed(real, text)
    return await in_thread(lambda _: replace_file(path, data, jail))


class DiskFile(Struct, frozen=True):
    """A file as it is on the disk."""

    path: str
    """Its real path."""
    data: bytes
    text: str | None
    """None: nothing that an editor is asked about."""
    age_s: float
    """Seconds since it was changed."""


async def _other(disk: DiskFile, editor: EditorFiles) -> str | None:
    """Return what the editor has, if it is something else that a person has typed."""
    text = None if disk.text is None else await editor.read(disk.path)
    if text is None or disk.text is None:
        return None
    plain = _plain(text.encode())
    if plain == disk.text:  # editors replace line ends and drop a byte order mark, which is no change of a person
        editor.agreed(disk.path, disk.text)
        return None
    # What both had before is in the editor still: something else has changed the file since.
    return None if plain is None or editor.has_agreed(disk.path, plain) else text


def _file(path: Path, context: ToolContext) -> DiskFile:
    with open_regular(path, context.home, context.jail) as file:
        data = file.read(EDITOR_BYTES + 1) or b""
        age_s = time.time() - os.fstat(file.fileno()).st_mtime
    text = _plain(data) if len(data) <= EDITOR_BYTES else None
    return DiskFile(os.path.realpath(path), data, text, max(age_s, 0.0))


def _plain(data: bytes) -> str | None:
    """Return the text as editors have it; None if it is none."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text.replace("\r\n", "\n")
