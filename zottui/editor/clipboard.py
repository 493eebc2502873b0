"""Reads an image from the desktop's clipboard with wl-paste, xclip or pngpaste."""

import asyncio
import os
import shutil
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress

from zottui.editor.images import MAX_BYTES, ImageError

READ_S = 5.0
"""Seconds for the program to write its output; enough for an X server behind a slow connection."""

END_S = 1.0
"""Seconds to wait for the end of a killed program."""

# Read size for draining: the capacity of a pipe.
_DRAINED_BYTES = 64 * 1024

_WAYLAND = ("wl-paste", "--no-newline", "--type", "image/png")
_X11 = ("xclip", "-selection", "clipboard", "-target", "image/png", "-out")
_MACOS = ("pngpaste", "-")


async def image(env: Mapping[str, str]) -> bytes:
    """Return the PNG file in the clipboard. One that is too large is cut to one byte more than allowed.

    Raises:
        ImageError: there is no display, no program to read it, or no image.
    """
    command = _command(env)
    program = shutil.which(command[0], path=env.get("PATH"))
    if program is None:
        raise ImageError(f"install {command[0]} to paste images, or drop an image file on the terminal")
    data = await _output(program, *command[1:], env=env)
    if not data:
        raise ImageError("no image in the clipboard")
    return data


def _command(env: Mapping[str, str]) -> tuple[str, ...]:
    if env.get("WAYLAND_DISPLAY"):
        return _WAYLAND
    if env.get("DISPLAY"):
        return _X11
    if sys.platform == "darwin":
        return _MACOS
    raise ImageError("no display, so no clipboard to read: drop an image file on the terminal")


async def _output(program: str, *args: str, env: Mapping[str, str]) -> bytes:
    """Run a program and return at most `MAX_BYTES + 1` bytes of its output; it has ended afterwards."""
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            *args,
            env=dict(env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,  # its own process group, so that `_end` can kill its children too
        )
    except OSError as error:
        raise ImageError(f"{program} cannot be started: {error.strerror}") from error
    assert process.stdout is not None
    try:
        async with asyncio.timeout(READ_S):
            return await _read(process.stdout)
    except TimeoutError as error:
        raise ImageError(f"{program} did not answer in {READ_S:.0f} s") from error
    finally:
        await _end(process, process.stdout)


async def _end(process: asyncio.subprocess.Process, stream: asyncio.StreamReader) -> None:
    """Kill the program with all its children and wait for its end."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with suppress(TimeoutError):
        async with asyncio.timeout(END_S):
            while await stream.read(_DRAINED_BYTES):  # asyncio reports the end only after the pipe is drained
                pass
            await process.wait()


async def _read(stream: asyncio.StreamReader) -> bytes:
    data = bytearray()
    while len(data) <= MAX_BYTES and (piece := await stream.read(MAX_BYTES + 1 - len(data))):
        data += piece
    return bytes(data)
