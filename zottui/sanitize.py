"""Sanitizes untrusted text for the terminal client: `zotd.sanitize`, plus spaces for tabs."""

from zotd import sanitize

TAB_COLUMNS = 4
"""Columns between tab stops. Tabs are mostly in source code, where half of a terminal's eight are enough."""


def harmless(text: str) -> str:
    """Return `zotd.sanitize.harmless(text)` with tabs as spaces: the client counts columns, and a tab has no fixed width."""
    return sanitize.harmless(text).expandtabs(TAB_COLUMNS)
