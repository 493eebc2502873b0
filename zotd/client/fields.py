"""Reading frames that are dicts: a field that is missing or of another type counts as empty."""

from zotd.client.blocking import Json


def text(frame: Json, name: str) -> str:
    """A string field; numbers as their digits."""
    value = frame.get(name)
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def maybe_text(frame: Json, name: str) -> str | None:
    """A string field that may be absent."""
    value = frame.get(name)
    return value if isinstance(value, str) else None


def number(frame: Json, name: str) -> int:
    """A whole number, or 0."""
    value = frame.get(name)
    return value if isinstance(value, int) else 0


def amount(frame: Json, name: str) -> float:
    """A number, or 0."""
    value = frame.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def child(frame: Json, name: str) -> Json:
    """An object field."""
    value = frame.get(name)
    return value if isinstance(value, dict) else {}


def children(frame: Json, name: str) -> list[Json]:
    """A list of objects."""
    value = frame.get(name)
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def strings(frame: Json, name: str) -> list[str]:
    """A list of strings."""
    value = frame.get(name)
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def spoken(frame: Json) -> str:
    """The text blocks of a message's `content`, joined."""
    return "".join(text(block, "text") for block in children(frame, "content") if block.get("type") == "text")
