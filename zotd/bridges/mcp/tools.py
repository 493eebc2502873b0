"""Names a server's tools for the model, and builds the frames that register them."""

import re
from collections.abc import Iterable, Mapping

from mcp.types import Tool

from zotd.bridges.mcp.names import distinct
from zotd.sdk.pipe import Frame

_UNUSABLE = re.compile(r"[^A-Za-z0-9_-]")
"""Characters that not every vendor accepts in a name."""


def offered_names(server: str, tools: Iterable[str]) -> Mapping[str, str]:
    """Map the server's own tool names to names for the model, `server__tool`."""
    return distinct(tools, lambda tool: _UNUSABLE.sub("_", f"{server}__{tool}"))


def registration(name: str, tool: Tool) -> Frame:
    """Build the frame `register_tool` for a tool that the model knows as `name`.

    The server's hints are trusted, because the user chose the server: a read-only tool may be repeated after a crash and
    run in parallel. All other tools run alone, because the server's state may depend on the order.
    """
    hints = tool.annotations
    is_read_only = hints is not None and hints.read_only_hint is True
    is_idempotent = hints is not None and hints.idempotent_hint is True
    frame: Frame = {
        "type": "register_tool",
        "name": name,
        "description": tool.description or tool.title or "",
        "schema": tool.input_schema,
        "replay": "safe" if is_read_only else "idempotent" if is_idempotent else "never",
        "parallel": is_read_only,
    }
    if tool.output_schema is not None:
        frame["output_schema"] = tool.output_schema
    return frame
