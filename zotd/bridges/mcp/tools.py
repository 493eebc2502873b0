"""Names a server's tools for the model, and builds the frames that register them."""

import hashlib
import re
from collections.abc import Iterable

from mcp.types import Tool

from zotd.sdk.pipe import Frame

NAME_CHARS = 64
"""Longest name that every vendor accepts. Characters are letters, digits, `_` and `-`."""

_UNUSABLE = re.compile(r"[^A-Za-z0-9_-]")


def offered_names(server: str, tools: Iterable[str]) -> dict[str, str]:
    """Map the server's own tool names to names for the model, `server__tool`.

    A name that is too long is cut. Such a name, and one that is already taken, ends in a digest of the tool's own name, so
    that it is the same after a restart: transcripts refer to it.
    """
    names: dict[str, str] = {}
    taken: set[str] = set()
    for tool in tools:
        name = _UNUSABLE.sub("_", f"{server}__{tool}")
        if len(name) > NAME_CHARS or name in taken:
            digest = hashlib.sha256(tool.encode()).hexdigest()[:6]
            name = f"{name[: NAME_CHARS - 7]}_{digest}"
        names[tool] = name
        taken.add(name)
    return names


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
