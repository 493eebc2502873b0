"""Limit on the nesting of values that extensions and models send, because zot has to encode and decode them again."""

MAX_DEPTH = 64
"""Levels in a call's arguments. The decoder accepts about 970, but what it accepts can be too deep for the encoder,
which may run deeper in the stack, and for clients in other languages."""

TOO_DEEP = f"arguments that are nested more than {MAX_DEPTH} deep"
"""Part of the error sentence."""


def is_too_deep(value: object, depth: int = MAX_DEPTH) -> bool:
    """Whether a decoded JSON value is nested more than `depth` levels deep."""
    if not isinstance(value, dict | list):
        return False
    children = value.values() if isinstance(value, dict) else value
    # The limit also bounds this recursion.
    return depth == 0 or any(is_too_deep(child, depth - 1) for child in children)
