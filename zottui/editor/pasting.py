"""What is pasted: short text as it is, long text as a placeholder, image files and images of the clipboard as images."""

import asyncio
import re
import shlex
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from zotd.wire.api import PromptImage
from zottui.editor import clipboard, images
from zottui.editor.buffer import PromptBuffer, encodable
from zottui.editor.images import ImageError
from zottui.editor.placeholders import Placeholders, is_long
from zottui.ui_context import UiContext

MAX_PASTE_CHARS = 4_000_000
"""The daemon takes lines of 16 MiB, in which a character may take four bytes; no model reads as much as this."""

MAX_PATHS_CHARS = 4_096
"""A longer paste is no list of dropped files."""

_IMAGE_NAME = re.compile(r"\.(?:png|jpe?g|gif|webp)$", re.IGNORECASE)


class Pasting:
    """Of one editor."""

    def __init__(self, desk: UiContext, buffer: PromptBuffer, placeholders: Placeholders) -> None:
        """Pastes into `buffer` where its cursor is."""
        self._desk = desk
        self._buffer = buffer
        self._placeholders = placeholders
        self._reading = 0
        self.when_done: Callable[[], None] | None = None
        """Called once, when no image is being read any more."""

    @property
    def is_busy(self) -> bool:
        """An image is being read, and will be in the text in a moment."""
        return self._reading > 0

    def paste(self, text: str) -> None:
        """Paste what the terminal sent."""
        text = encodable(text).replace("\r\n", "\n").replace("\r", "\n")
        paths = image_paths(text, self._desk.env.get("HOME", "~"))
        if paths:
            self._read(lambda: self._paste_files(paths, text))
        elif len(text) > MAX_PASTE_CHARS:
            self._desk.say(
                f"the paste has {len(text):,} characters, the limit is {MAX_PASTE_CHARS:,}: "
                "save it to a file and name the file",
                "warn",
            )
        else:
            self._insert(self._placeholders.paste(text) if is_long(text) else text)

    def paste_image(self) -> None:
        """Paste the image that is in the clipboard, if there is one; else say why not."""
        self._read(self._paste_clipboard)

    def _read(self, reading: Callable[[], Coroutine[object, object, None]]) -> None:
        """Read an image beside; Enter waits for it."""

        async def work() -> None:
            try:
                await reading()
            except ImageError as error:
                self._desk.say(str(error), "warn")
                self.when_done = None  # who sends a prompt with an image does not want it sent without
            finally:
                self._reading -= 1
                self._finish()

        self._reading += 1
        self._desk.spawn(work())

    def _finish(self) -> None:
        self._desk.redraw()
        if not self.is_busy and self.when_done is not None:
            then, self.when_done = self.when_done, None
            then()

    async def _paste_files(self, paths: Sequence[str], text: str) -> None:
        """The images at `paths`; when one of them is no file, the text that named them."""
        try:
            found = [await asyncio.to_thread(images.read, path) for path in paths]
        except FileNotFoundError:
            self._insert(text)
            return
        for path, image in zip(paths, found, strict=True):
            self._add(image, Path(path).name)

    async def _paste_clipboard(self) -> None:
        self._add(images.prompt_image(await clipboard.image(self._desk.env), "the image in the clipboard"), "clipboard")

    def _add(self, image: PromptImage, name: str) -> None:
        images.check_room(image, self._placeholders.draft(self._buffer.text).images.values())
        self._insert(f"{self._placeholders.image(image, name)} ")

    def _insert(self, text: str) -> None:
        self._buffer.save_to_undo_stack()
        self._buffer.insert_text(text)


def image_paths(text: str, home: str) -> list[str]:
    """The absolute paths of images that `text` consists of, as terminals write files that are dropped on them.

    Quoted, with backslashes, as `file:` addresses, several behind each other; empty when it is anything else.
    """
    if len(text) > MAX_PATHS_CHARS or not _IMAGE_NAME.search(text.strip().rstrip("'\"")):
        return []
    try:
        words = shlex.split(text)
    except ValueError:  # a quote that is not closed: prose
        return []
    paths = [_path(word, home) for word in words]
    return paths if all(path.startswith("/") and _IMAGE_NAME.search(path) for path in paths) else []


def _path(word: str, home: str) -> str:
    if word.startswith("file://"):
        return unquote(urlsplit(word).path)
    return f"{home}{word[1:]}" if word.startswith("~/") else word
