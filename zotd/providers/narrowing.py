"""Leaves out of a request what its model cannot take, as far as the user's `[[models]]` say so."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from zotd.core.ports import ModelRequest
from zotd.wire.api import ModelInfo
from zotd.wire.content import Block, Image, Message, Text, ToolResult

NO_IMAGES = "[an image, which this model cannot see; it is left out]"


class Narrowing:
    """Narrows the requests of one run. A message becomes the same object each time, so that it is encoded once."""

    def __init__(self, info: ModelInfo) -> None:
        self._tools = info.tools is not False
        self._images = info.images is not False
        self._known: dict[int, tuple[Message, Message]] = {}
        """By the identity of a message: itself, which keeps the identity from being used again, and without images."""

    def narrowed(self, request: ModelRequest) -> ModelRequest:
        """Return the request without tools or images if the model takes none."""
        if not self._tools:
            request = replace(request, tools=[])
        if not self._images:
            request = replace(request, messages=[self._without_images(message) for message in request.messages])
        return request

    def _without_images(self, message: Message) -> Message:
        if not _has_images(message.content):
            return message
        if id(message) not in self._known:
            content: list[Block] = [_block(block) for block in message.content]
            self._known[id(message)] = message, replace(message, content=content)
        return self._known[id(message)][1]


def _has_images(content: Sequence[Block]) -> bool:
    return any(isinstance(b, Image) or (isinstance(b, ToolResult) and _has_images([*b.content])) for b in content)


def _block(block: Block) -> Block:
    if isinstance(block, ToolResult):
        return replace(block, content=list(_texts(block.content)))
    return Text(NO_IMAGES) if isinstance(block, Image) else block


def _texts(content: Iterable[Text | Image]) -> Iterable[Text | Image]:
    return (Text(NO_IMAGES) if isinstance(block, Image) else block for block in content)
