"""Reads fields of frames that are dicts. A field that is missing or has another type counts as empty."""

from zotd.client.blocking import Json


def text(frame: Json, name: str) -> str:
    """Return a string field; a number is converted to its digits."""
    value = frame.get(name)
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def maybe_text(frame: Json, name: str) -> str | None:
    """Return a string field, or None if it is absent or no string."""
    value = frame.get(name)
    return value if isinstance(value, str) else None


def number(frame: Json, name: str) -> int:
    """Return an integer field, or 0."""
    value = frame.get(name)
    return value if isinstance(value, int) else 0


def amount(frame: Json, name: str) -> float:
    """Return a number field as float, or 0."""
    value = frame.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def child(frame: Json, name: str) -> Json:
    """Return an object field, or an empty dict."""
    value = frame.get(name)
    return value if isinstance(value, dict) else {}


def children(frame: Json, name: str) -> list[Json]:
    """Return the objects in a list field; other elements are dropped."""
    value = frame.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def strings(frame: Json, name: str) -> list[str]:
    """Return the strings in a list field; other elements are dropped."""
    value = frame.get(name)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def spoken(frame: Json) -> str:
    """Return the text blocks of a message's `content`, joined."""
    return "".join(text(block, "text") for block in children(frame, "content") if block.get("type") == "text")


def session_id(session: Json) -> str:
    """Return the id of a session."""
    return text(session, "id")


def parent_id(session: Json) -> str | None:
    """Return the id of the session that began this one; None: it is no subagent."""
    return text(child(session, "parent"), "session") or None
