"""Reads and checks the images of a prompt before the daemon would refuse them."""

import base64
import os
import stat
from collections.abc import Iterable

from zotd.wire.api import PromptImage

MAX_BYTES = 5 * 1024 * 1024
"""Most bytes of an image: the daemon's limit, which is the smallest of the providers' limits."""

MAX_BASE64 = 15 * 1024 * 1024
"""Most Base64 characters of all images of a prompt: a frame has at most 16 MiB, with the text in it."""

_MIB = 1024 * 1024


class ImageError(Exception):
    """An image cannot be sent; the message is a sentence for the user."""


def read(path: str) -> PromptImage:
    """Read the image at `path`. Blocks.

    Raises:
        FileNotFoundError: the file does not exist.
        ImageError: it is not an image, too large, or unreadable.
    """
    try:
        # O_NONBLOCK: opening a named pipe would wait for a writer.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ImageError(f"{path} is not a file")
            data = file.read(MAX_BYTES + 1)  # one more than allowed tells that it is too large, whatever its size
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(path) from error
    except OSError as error:
        raise ImageError(f"{path} cannot be read: {error.strerror}") from error
    return prompt_image(data, path)


def prompt_image(data: bytes, name: str) -> PromptImage:
    """Check and encode an image; `name` identifies it in errors.

    Raises:
        ImageError: its format is not supported, or it is too large.
    """
    kind = _kind(data)
    if kind is None:
        raise ImageError(f"{name} is not a PNG, JPEG, GIF or WebP image")
    if len(data) > MAX_BYTES:
        raise ImageError(f"{name} is larger than the {MAX_BYTES // _MIB} MiB that models accept: make a smaller copy")
    return PromptImage(mime_type=kind, data=base64.b64encode(data).decode())


def check_room(image: PromptImage, others: Iterable[PromptImage]) -> None:
    """Raise `ImageError` if `image` does not fit into a prompt with `others`."""
    if len(image.data) + sum(len(other.data) for other in others) > MAX_BASE64:
        raise ImageError(
            f"the images of one prompt may have at most {MAX_BASE64 * 3 // 4 // _MIB} MiB: send this one in the next prompt"
        )


def _kind(data: bytes) -> str | None:
    """Return the media type by the file's magic bytes, since file names may be wrong."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None
