"""Something that turns, so that one sees that it goes on."""

FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"

FRAMES_PER_S = 8
"""Smooth enough, and half of what the live area is drawn with at most."""


def spinner(now: float) -> str:
    """The character for this moment."""
    return FRAMES[int(now * FRAMES_PER_S) % len(FRAMES)]
