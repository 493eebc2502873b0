"""What a tool of an extension answered, as the transcript keeps it (`docs/extensions.md`, `tool_result`)."""

import binascii
from collections.abc import Mapping

from zotd.core.ports import ToolOutcome
from zotd.wire.content import Image, Text
from zotd.wire.ext import ToolResult

NO_CONTENT = "(no content)"

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""What vendors take; another one in the transcript, and each later request of the session would be refused."""


def outcome_of(result: ToolResult, extension: str) -> ToolOutcome:
    """The outcome; a block that makes no sense becomes a text that says so."""
    is_error = result.is_error
    content: list[Text | Image] = []
    for raw in result.content:
        block, is_bad = _block(raw, extension)
        is_error = is_error or is_bad
        if block is not None:
            content.append(block)
    return ToolOutcome(content or [Text(NO_CONTENT)], is_error)


def _block(raw: object, extension: str) -> tuple[Text | Image | None, bool]:
    """The block, None for an empty text, and whether it makes the result an error."""
    block = raw if isinstance(raw, Mapping) else {}
    kind, text = block.get("type"), block.get("text")
    if kind == "text" and isinstance(text, str):
        return (Text(text) if text else None), False
    if kind == "image":
        return _image(block, extension)
    what = f'unknown block type "{kind}"' if isinstance(kind, str) and kind != "text" else "a block that is none"
    return Text(f"[{what} from extension {extension}]"), False


def _image(block: Mapping[object, object], extension: str) -> tuple[Text | Image, bool]:
    mime_type, data = block.get("mime_type"), block.get("data")
    if not isinstance(mime_type, str) or mime_type not in IMAGES:
        return Text(f'[image of unknown type "{mime_type}" from extension {extension}]'), True
    try:
        size = len(binascii.a2b_base64(data if isinstance(data, str) else "!", strict_mode=True))
    except (binascii.Error, ValueError):
        return Text(f"[image from extension {extension} that is not base64]"), True
    if not size or not isinstance(data, str):
        return Text(f"[empty image from extension {extension}]"), True
    return Image(mime_type, size, data), False
