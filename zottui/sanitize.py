"""Text from outside, for the terminal client: `zotd.sanitize`, with spaces for tabs."""

from zotd import sanitize

TAB_COLUMNS = 4
"""Distance of tab stops: source code is what tabs are in, and half of what a terminal does is enough there."""


def harmless(text: str) -> str:
    """As `zotd.sanitize.harmless`; tabs become spaces, because columns are counted here."""
    return sanitize.harmless(text).expandtabs(TAB_COLUMNS)
