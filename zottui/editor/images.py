"""Images of a prompt: what models take, checked before the daemon would refuse them."""

import base64
import os
import stat
from collections.abc import Iterable

from zotd.wire.api import PromptImage

MAX_BYTES = 5 * 1024 * 1024
"""Of one image: what the daemon takes, which is the smallest of the vendors' limits."""

MAX_BASE64 = 15 * 1024 * 1024
"""Of all images of a prompt, as they are sent: a line to the daemon has at most 16 MiB, and the text is in it too."""

_MIB = 1024 * 1024


class ImageError(Exception):
    """Something is no image that can be sent; the message is one sentence for the user."""


def read(path: str) -> PromptImage:
    """The image at `path`. Blocks.

    Raises:
        FileNotFoundError: there is no such file.
        ImageError: it is no image, is too large, or cannot be read.
    """
    try:
        # Without blocking: a named pipe would wait for somebody who writes.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ImageError(f"{path} is not a file")
            data = file.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(path) from error
    except OSError as error:
        raise ImageError(f"{path} cannot be read: {error.strerror}") from error
    return prompt_image(data, path)


def prompt_image(data: bytes, name: str) -> PromptImage:
    """The image as a prompt carries it; `name` says in errors which.

    Raises:
        ImageError: it is of no kind that models take, or too large.
    """
    kind = _kind(data)
    if kind is None:
        raise ImageError(f"{name} is not a PNG, JPEG, GIF or WebP image")
    if len(data) > MAX_BYTES:
        raise ImageError(f"{name} is larger than the {MAX_BYTES // _MIB} MiB that models accept: make a smaller copy")
    return PromptImage(mime_type=kind, data=base64.b64encode(data).decode())


def check_room(image: PromptImage, others: Iterable[PromptImage]) -> None:
    """Raises `ImageError` when `image` does not fit into a prompt beside `others`."""
    if len(image.data) + sum(len(other.data) for other in others) > MAX_BASE64:
        raise ImageError(
            f"the images of one prompt may have at most {MAX_BASE64 * 3 // 4 // _MIB} MiB: send this one in the next prompt"
        )


def _kind(data: bytes) -> str | None:
    """The media type, by what the file begins with; a name may say anything."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None
