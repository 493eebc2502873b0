"""Converts tool results between the extension protocol and the transcript (`docs/extensions.md`, `tool_result`)."""

import binascii
from collections.abc import Mapping, Sequence

from zotd.core.ports import ToolOutcome
from zotd.wire.base import encode
from zotd.wire.content import Block, Image, Message, Text
from zotd.wire.ext import PromptMessage, ToolResult
from zotd.wire.framing import SERVER_LIMIT

NO_CONTENT = "(no content)"

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Image types that every vendor accepts. With another one in the transcript, a vendor would refuse every later request."""

MAX_BLOCKS = 1_000
"""Limit of blocks in a result. An invalid block of two bytes becomes a text of fifty, so bytes alone are no limit."""

TEXT_BYTES = SERVER_LIMIT - 64 * 1024
"""Limit of all text in a result, as JSON. The event that shows it adds fields and is limited to 4 MiB. Bytes that are not
UTF-8 have already grown to three times their size."""

RESULT_BYTES = 256 * 1024
"""Limit of text and base64 in a result for an extension. Its line stays far below 4 MiB even if JSON escapes everything."""

RESULT_BLOCKS = 128


def outcome_of(result: ToolResult, extension: str) -> ToolOutcome:
    """Convert a result of an extension's tool. An invalid block becomes a text that names the problem."""
    if len(result.content) > MAX_BLOCKS:
        return ToolOutcome.error(f"{extension} answered with more than {MAX_BLOCKS} blocks")
    is_error = result.is_error
    content: list[Text | Image] = []
    for raw in result.content:
        block, is_bad = _block(raw, extension)
        is_error = is_error or is_bad
        if block is not None:
            content.append(block)
    # Measured as JSON, the form that has to fit into an event: a control character takes six bytes there.
    if sum(len(encode(block)) for block in content if isinstance(block, Text)) > TEXT_BYTES:
        return ToolOutcome.error(f"{extension} answered with too much text (almost 4 MiB)")
    return ToolOutcome(content or [Text(NO_CONTENT)], is_error)


def prompt_of(messages: Sequence[PromptMessage], extension: str, time: str) -> list[Message]:
    """Convert the messages of a prompt.

    Raises:
        ValueError: one of them cannot be sent to a model; the message says why.
    """
    found: list[Message] = []
    for message in messages:
        if message.role not in {"user", "assistant"}:
            raise ValueError(f'a message has the unknown role "{message.role[:40]}"')
        content: list[Block] = []
        for block, is_bad in (_block(raw, extension) for raw in message.content[:MAX_BLOCKS]):
            if is_bad or (isinstance(block, Image) and message.role != "user"):
                raise ValueError("an image is invalid, of an unknown type, or in a message of the assistant")
            if block is not None:
                content.append(block)
        if content:  # vendors refuse messages without content
            found.append(Message(message.role, content, time))
    return found


def state_of(result: ToolResult) -> str:
    """Return the outcome that an extension reports for a reconciled call: `completed`, `not_started` or `unknown`."""
    told = result.structured_content.get("state") if isinstance(result.structured_content, Mapping) else None
    # Anything unclear is `unknown`, which never makes recovery repeat the call.
    return told if isinstance(told, str) and told in {"completed", "not_started"} else "unknown"


def blocks_of(content: Sequence[Text | Image]) -> tuple[tuple[dict[str, object], ...], bool]:
    """Convert a result for an extension, limited to `RESULT_BYTES`. Also return whether something was left out.

    Text is cut between two characters; an image that does not fit is replaced by a text that says so.
    """
    blocks: list[dict[str, object]] = []
    room, is_cut = RESULT_BYTES, len(content) > RESULT_BLOCKS
    for block in content[:RESULT_BLOCKS]:
        if isinstance(block, Image) and len(block.data) <= room:
            blocks.append({"type": "image", "mime_type": block.mime_type, "data": block.data})
            room -= len(block.data)
            continue
        text = block.text if isinstance(block, Text) else f"[{block.mime_type} of {block.bytes} bytes, too long]"
        data = text.encode()
        is_cut = is_cut or isinstance(block, Image) or len(data) > room
        # Drops the bytes of a character that was cut in half.
        kept = data[:room].decode(errors="ignore")
        if kept:
            blocks.append({"type": "text", "text": kept})
            room -= len(kept.encode())
    return tuple(blocks) or ({"type": "text", "text": NO_CONTENT},), is_cut


def _block(raw: object, extension: str) -> tuple[Text | Image | None, bool]:
    """Convert one block (None for an empty text). Also return whether it makes the result an error."""
    block = raw if isinstance(raw, Mapping) else {}
    kind, text = block.get("type"), block.get("text")
    if kind == "text" and isinstance(text, str):
        # Some vendors refuse requests that contain empty text blocks.
        return (Text(text) if text else None), False
    if kind == "image":
        return _image(block, extension)
    what = f'unknown block type "{kind}"' if isinstance(kind, str) and kind != "text" else "an invalid block"
    # Not an error: the other blocks of the result may be all that the model needs.
    return Text(f"[{what} from extension {extension}]"), False


def _image(block: Mapping[object, object], extension: str) -> tuple[Text | Image, bool]:
    mime_type, data = block.get("mime_type"), block.get("data")
    if not isinstance(mime_type, str) or mime_type not in IMAGES:
        return Text(f'[image of unknown type "{mime_type}" from extension {extension}]'), True
    try:
        # Checked here because a vendor would refuse the request, and every later one of the session.
        size = len(binascii.a2b_base64(data if isinstance(data, str) else "!", strict_mode=True))
    except (binascii.Error, ValueError):
        return Text(f"[image from extension {extension} that is not base64]"), True
    if not size or not isinstance(data, str):
        return Text(f"[empty image from extension {extension}]"), True
    return Image(mime_type, size, data), False
