"""Versions spoken on the wire."""

PROTOCOL = 1
"""`protocol_version` of every hello; fields and events are only added within it (`docs/protocol.md`)."""

VERSION = "0.1.0"
"""Version of the program; `pyproject.toml` reads it from here."""
