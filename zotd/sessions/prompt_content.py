"""A prompt's words and images as content, checked: what is wrong with them is told before anything is accepted."""

import base64
from collections.abc import Sequence

from zotd.wire.api import PromptImage
from zotd.wire.base import encode
from zotd.wire.content import Block, Image, Text
from zotd.wire.errors import Code, CommandError
from zotd.wire.framing import SERVER_LIMIT

IMAGE_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""What the model vendors take."""

MAX_IMAGE_BYTES = 5 * 1024 * 1024
"""Largest image, decoded: the smallest of the vendors' limits."""


MAX_TEXT_BYTES = SERVER_LIMIT - 64 * 1024
"""Longest text of a prompt, as JSON: the event that shows it is one frame (`docs/protocol.md`), with its other fields."""

JSON_BYTES = 6
"""Most bytes of a character in JSON, as in `\\u0000`; what is short by this measure need not be encoded."""


def content(message: str, images: Sequence[PromptImage]) -> list[Block]:
    """The blocks of a user message.

    Raises:
        CommandError: no text and no image, too much text, or an image that no vendor takes.
    """
    blocks: list[Block] = []
    for number, image in enumerate(images, 1):
        blocks.append(_image(number, image))
    if message.strip():
        _check_length(message)
        blocks.append(Text(message))
    if not blocks:
        raise CommandError(Code.BAD_REQUEST, "the prompt is empty; send text, an image, or both")
    return blocks


def _check_length(message: str) -> None:
    if len(message) * JSON_BYTES <= MAX_TEXT_BYTES:
        return
    size = len(encode(message))
    if size > MAX_TEXT_BYTES:
        sentence = (
            f"the prompt has {size:,} bytes of text, of {MAX_TEXT_BYTES:,} at most; put it into a file to be read"
        )
        raise CommandError(Code.TOO_LARGE, sentence)


def _image(number: int, image: PromptImage) -> Image:
    if image.mime_type not in IMAGE_TYPES:
        kinds = ", ".join(kind.removeprefix("image/") for kind in IMAGE_TYPES)
        raise CommandError(Code.BAD_REQUEST, f'image {number} is "{image.mime_type}"; models take {kinds}')
    try:
        size = len(base64.b64decode(image.data, validate=True))
    except ValueError as error:  # binascii.Error is one; letters beyond ASCII raise the plain one
        raise CommandError(Code.BAD_REQUEST, f"the data of image {number} is not base64") from error
    if not 0 < size <= MAX_IMAGE_BYTES:
        limit = MAX_IMAGE_BYTES // (1024 * 1024)
        raise CommandError(Code.TOO_LARGE, f"image {number} has {size} bytes; models take 1 byte to {limit} MiB")
    return Image(image.mime_type, size, image.data)
