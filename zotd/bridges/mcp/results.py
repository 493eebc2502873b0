"""Converts the result of a server's tool to the frame `tool_result`. Content other than text and images is described."""

import json

from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ReadResourceResult,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from zotd.sdk.pipe import Frame

IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""Image types that models accept. With another one, the host would treat the whole result as an error."""


def tool_result(call: str, result: CallToolResult) -> Frame:
    """Build the answer to the `tool_call` with the id `call`."""
    content = [_block(block) for block in result.content]
    # Models see only the content, so a purely structured result has to be shown as text.
    if not content and result.structured_content is not None:
        content = [_text(json.dumps(result.structured_content, ensure_ascii=False))]
    frame: Frame = {"type": "tool_result", "id": call, "content": content, "is_error": bool(result.is_error)}
    if result.structured_content is not None:
        frame["structured_content"] = result.structured_content
    return frame


def content_frames(call: str, content: list[Frame]) -> Frame:
    """Build the answer to the `tool_call` with the id `call` from blocks."""
    return {"type": "tool_result", "id": call, "content": content, "is_error": False}


def words_in(found: ReadResourceResult) -> str:
    """Return a resource as text; what is none is described."""
    return "\n".join(_words(resource_frame(one)) for one in found.contents)


def tool_error(call: str, sentence: str) -> Frame:
    """Build the answer to a call that has failed."""
    return {"type": "tool_result", "id": call, "content": [_text(sentence)], "is_error": True}


def words_of(block: ContentBlock) -> str:
    """Return a block as text; what is none is described, images too."""
    return _words(_block(block))


def _words(frame: Frame) -> str:
    if frame["type"] == "text":
        return str(frame["text"])
    return f"[image, {frame['mime_type']}, which cannot be shown]"


def progress_text(progress: float, total: float | None, message: str | None) -> str:
    """Format a progress notification for the user, for example "3/10 copying"."""
    count = f"{progress:g}" if total is None else f"{progress:g}/{total:g}"
    return f"{count} {message}" if message else count


def _block(block: ContentBlock) -> Frame:
    match block:
        case TextContent():
            return _text(block.text)
        case ImageContent():
            return _binary("image", block.mime_type, block.data)
        case AudioContent():
            return _binary("audio", block.mime_type, block.data)
        case ResourceLink():
            about = ", ".join(filter(None, (block.mime_type, block.description)))
            return _text(f"[resource {block.name}: {block.uri}{f' ({about})' if about else ''}]")
        case EmbeddedResource():
            return resource_frame(block.resource)


def resource_frame(resource: TextResourceContents | BlobResourceContents) -> Frame:
    """Build a block of the content of a resource."""
    if isinstance(resource, BlobResourceContents):
        return _binary(f"resource {resource.uri}", resource.mime_type or "of unknown type", resource.blob)
    return _text(resource.text)


def _binary(what: str, mime_type: str, data: str) -> Frame:
    """Build an image block, or a text about content that cannot be shown. `data` is base64."""
    if mime_type in IMAGES:
        return {"type": "image", "mime_type": mime_type, "data": data}
    return _text(f"[{what}, {mime_type}, {len(data) * 3 // 4} bytes, which cannot be shown]")


def _text(text: str) -> Frame:
    return {"type": "text", "text": text}
