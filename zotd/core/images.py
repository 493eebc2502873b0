"""Images in messages, which vendors may refuse."""

from msgspec.structs import replace

from zotd.wire.content import Block, Image, Message, Text, ToolResult

REFUSED_IMAGE = "[an image that the model's vendor refused; it is left out]"
"""Replaces an image in a request that the vendor refused."""


def has_images(message: Message) -> bool:
    """Return whether there is an image in it, also in the result of a tool."""
    return any(
        isinstance(block, Image) or (isinstance(block, ToolResult) and any(isinstance(b, Image) for b in block.content))
        for block in message.content
    )


def without_images(message: Message) -> Message:
    """Return the message with a text in place of each image."""
    return replace(message, content=[_without_image(block) for block in message.content])


def _without_image(block: Block) -> Block:
    match block:
        case Image():
            return Text(REFUSED_IMAGE)
        case ToolResult():
            content = [Text(REFUSED_IMAGE) if isinstance(inner, Image) else inner for inner in block.content]
            return replace(block, content=content)
        case _:
            return block
