"""A server's tools as the model sees them: their names, and the frames that register them."""

import hashlib
import re
from collections.abc import Iterable

from mcp.types import Tool

from zotd.sdk.pipe import Frame

NAME_CHARS = 64
"""Longest name of a tool that every vendor takes; the characters are letters, digits, `_` and `-`."""

_UNUSABLE = re.compile(r"[^A-Za-z0-9_-]")


def offered_names(server: str, tools: Iterable[str]) -> dict[str, str]:
    """What each tool is called for the model, `server__tool`, by the server's own name for it.

    A name that is too long is cut, and that or one that is taken ends in a digest of the tool's own name: the same
    after a restart, for transcripts speak of it.
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
    """The frame `register_tool` for a tool that the model knows as `name`.

    The server's hints are believed, since the user chose the server: what only reads may be repeated after a crash and
    run beside other calls; anything else runs alone, for the server's state may depend on the order.
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
