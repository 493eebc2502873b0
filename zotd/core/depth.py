"""How deep the values may be nested that programs and models hand in, and that others have to encode and read again."""

MAX_DEPTH = 64
"""Levels of a call's arguments: what decodes at 970 cannot be encoded deeper in the stack, nor read by every client."""

TOO_DEEP = f"arguments that are nested more than {MAX_DEPTH} deep"
"""For the sentence about a refusal."""


def is_too_deep(value: object, depth: int = MAX_DEPTH) -> bool:
    """Whether `value`, as JSON is decoded, is nested more than `depth` times."""
    if not isinstance(value, dict | list):
        return False
    children = value.values() if isinstance(value, dict) else value
    return depth == 0 or any(is_too_deep(child, depth - 1) for child in children)
