"""Pasting: short text as it is, long text as a placeholder, image files and clipboard images as images."""

import asyncio
import re
import shlex
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from zotd.wire.api import PromptImage
from zottui.editor import clipboard, images
from zottui.editor.buffer import PromptBuffer, encodable
from zottui.editor.images import ImageError
from zottui.editor.placeholders import Placeholders, is_long
from zottui.ui_context import ClientEnvironment, NotePrinter, Redrawable, TaskSpawner

MAX_PASTE_CHARS = 4_000_000
"""Most characters of a paste: a frame has at most 16 MiB, and a character up to four bytes."""

MAX_PATHS_CHARS = 4_096
"""Longest paste that is checked for paths of dropped files."""

_IMAGE_NAME = re.compile(r"\.(?:png|jpe?g|gif|webp)$", re.IGNORECASE)


class PastingContext(ClientEnvironment, NotePrinter, Redrawable, TaskSpawner, Protocol):
    """What `Pasting` needs of the application."""


class Pasting:
    """Handles the pastes of one editor."""

    def __init__(self, ui: PastingContext, buffer: PromptBuffer, placeholders: Placeholders) -> None:
        """Paste into `buffer` at its cursor."""
        self._ui = ui
        self._buffer = buffer
        self._placeholders = placeholders
        self._reading = 0
        self._when_done: Callable[[], None] | None = None

    @property
    def is_busy(self) -> bool:
        """Whether an image is being read, which Enter waits for."""
        return self._reading > 0

    def call_when_done(self, then: Callable[[], None] | None) -> None:
        """Call `then` once when the last image has been read, instead of the callback before; None: call nothing.

        An image that cannot be read drops the callback.
        """
        self._when_done = then

    def paste(self, text: str) -> None:
        """Insert text that the terminal has sent as a paste."""
        text = encodable(text).replace("\r\n", "\n").replace("\r", "\n")  # terminals send newlines in a paste as \r
        paths = image_paths(text, self._ui.env.get("HOME", "~"))
        if paths:
            self._read(lambda: self._paste_files(paths, text))
        elif len(text) > MAX_PASTE_CHARS:
            self._ui.say(
                f"the paste has {len(text):,} characters, the limit is {MAX_PASTE_CHARS:,}: "
                "save it to a file and name the file",
                "warn",
            )
        else:
            self._insert(self._placeholders.paste(text) if is_long(text) else text)

    def paste_image(self) -> None:
        """Insert the image in the clipboard, or print why that fails."""
        self._read(self._paste_clipboard)

    def _read(self, reading: Callable[[], Coroutine[object, object, None]]) -> None:
        """Read an image in the background; Enter waits for it."""

        async def work() -> None:
            try:
                await reading()
            except ImageError as error:
                self._ui.say(str(error), "warn")
                self._when_done = None  # drop a delayed submit: the prompt must not be sent without its image
            finally:
                self._reading -= 1
                self._finish()

        self._reading += 1
        self._ui.spawn(work())

    def _finish(self) -> None:
        self._ui.redraw()
        if not self.is_busy and self._when_done is not None:
            then, self._when_done = self._when_done, None  # reset first: the callback may submit again
            then()

    async def _paste_files(self, paths: Sequence[str], text: str) -> None:
        """Insert the images at `paths`; if one of them does not exist, insert the pasted text."""
        try:
            found = [await asyncio.to_thread(images.read, path) for path in paths]
        except FileNotFoundError:
            self._insert(text)
            return
        for path, image in zip(paths, found, strict=True):
            self._add(image, Path(path).name)

    async def _paste_clipboard(self) -> None:
        self._add(images.prompt_image(await clipboard.image(self._ui.env), "the image in the clipboard"), "clipboard")

    def _add(self, image: PromptImage, name: str) -> None:
        images.check_room(image, self._placeholders.draft(self._buffer.text).images.values())
        self._insert(f"{self._placeholders.image(image, name)} ")

    def _insert(self, text: str) -> None:
        self._buffer.save_to_undo_stack()  # a paste is one step of undo
        self._buffer.insert_text(text)


def image_paths(text: str, home: str) -> list[str]:
    """Return the image paths if `text` consists of nothing else, as terminals paste files that are dropped on them.

    Handles quotes, backslashes, `file:` URLs and several paths; returns absolute paths, or none for any other text.
    """
    if len(text) > MAX_PATHS_CHARS or not _IMAGE_NAME.search(text.strip().rstrip("'\"")):
        return []
    try:
        words = shlex.split(text)
    except ValueError:  # an unclosed quote: ordinary text with an apostrophe
        return []
    paths = [_path(word, home) for word in words]
    return paths if all(path.startswith("/") and _IMAGE_NAME.search(path) for path in paths) else []


def _path(word: str, home: str) -> str:
    if word.startswith("file://"):
        return unquote(urlsplit(word).path)
    return f"{home}{word[1:]}" if word.startswith("~/") else word
