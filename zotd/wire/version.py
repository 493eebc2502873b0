"""Versions on the wire, and how two programs agree on one."""

PROTOCOL = 1
"""`protocol_version` of every hello. Within a version, fields and events are only added (`docs/protocol.md`)."""

OLDEST = 1
"""The oldest protocol that this version still supports."""

VERSION = "0.2.0"
"""Version of the program; `pyproject.toml` reads it from here. The minor version increases with every change of the
database schema or of the protocol, because errors tell users to start "that version or a newer one"
(`tests/test_packaging.py`)."""

WEBSOCKET_PATH = "/v1"
"""Path of the WebSocket at every daemon (`docs/protocol.md`); another protocol would use another path."""

Range = tuple[int, int]
"""The oldest and the newest protocol that a program supports."""


def protocols() -> Range:
    """Return the range of this program."""
    return OLDEST, PROTOCOL


def agreed(client: Range, daemon: Range) -> int | None:
    """Return the newest protocol that both support, or None."""
    newest = min(client[1], daemon[1])
    return newest if newest >= max(client[0], daemon[0]) else None


def refusal(name: str, client: Range, daemon: Range, version: str) -> str:
    """Return the error for the user of the client `name` when the two ranges do not overlap; it says what to update.

    `version` is that of the daemon.
    """
    both = f"{name} speaks protocol {span(client)}, zotd {version} speaks {span(daemon)}"
    if client[1] < daemon[0]:
        return f"{both}: {name} is older, update it"
    return f"{both}: the daemon is older, update it with `zotctl restart --when-idle`"


def span(protocols: Range) -> str:
    """Format a range: `1`, or `1 to 3`."""
    oldest, newest = protocols
    return str(newest) if oldest == newest else f"{oldest} to {newest}"


def is_newer(version: str, other: str) -> bool:
    """Whether one program version is newer than the other; False if one of them is malformed."""
    try:
        return _parts(version) > _parts(other)
    except ValueError:
        return False


def _parts(version: str) -> list[int]:
    # A suffix such as `-dev` does not count.
    return [int(part) for part in version.partition("-")[0].split(".")]
