"""Headers in which GitHub Copilot is told about each request: it counts those of persons, and routes those with images."""

from zotd.core.ports import ModelRequest
from zotd.wire.content import Image, ToolResult

INITIATOR = "X-Initiator"
VISION = "Copilot-Vision-Request"

NAMES = (INITIATOR, VISION)


def initiator_headers(request: ModelRequest) -> dict[str, str]:
    """Return the headers of one request: a request that answers tool calls is the agent's own."""
    is_agent = bool(request.messages) and request.messages[-1].role == "tool"
    headers = {INITIATOR: "agent" if is_agent else "user"}
    return headers | ({VISION: "true"} if _has_image(request) else {})


def _has_image(request: ModelRequest) -> bool:
    blocks = [block for message in request.messages for block in message.content]
    blocks += [inner for block in blocks if isinstance(block, ToolResult) for inner in block.content]
    return any(isinstance(block, Image) for block in blocks)
