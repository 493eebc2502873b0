"""Versions spoken on the wire, and how two programs agree on one."""

PROTOCOL = 1
"""`protocol_version` of every hello; fields and events are only added within it (`docs/protocol.md`)."""

OLDEST = 1
"""The oldest protocol that this version still speaks."""

VERSION = "0.2.0"
"""Version of the program; `pyproject.toml` reads it from here. The middle number rises with every change of the database's
schema or of the protocol, so that "start that version or a newer one" names one that can (`tests/test_packaging.py`)."""

Range = tuple[int, int]
"""The oldest and the newest protocol that a program speaks."""


def protocols() -> Range:
    """Those of this program."""
    return OLDEST, PROTOCOL


def agreed(client: Range, daemon: Range) -> int | None:
    """The newest protocol that both speak; None when there is none."""
    newest = min(client[1], daemon[1])
    return newest if newest >= max(client[0], daemon[0]) else None


def refusal(name: str, client: Range, daemon: Range, version: str) -> str:
    """Why nothing is agreed, for the person at the client `name`, with what to do; two ranges that do not meet.

    `version`: of the daemon.
    """
    both = f"{name} speaks protocol {span(client)}, zotd {version} speaks {span(daemon)}"
    if client[1] < daemon[0]:
        return f"{both}: {name} is older, update it"
    return f"{both}: the daemon is older, update it with `zotctl restart --when-idle`"


def span(protocols: Range) -> str:
    """A range in words: `1`, or `1 to 3`."""
    oldest, newest = protocols
    return str(newest) if oldest == newest else f"{oldest} to {newest}"


def is_newer(version: str, other: str) -> bool:
    """Whether one program version comes after the other; False when that cannot be told."""
    try:
        return _parts(version) > _parts(other)
    except ValueError:
        return False


def _parts(version: str) -> list[int]:
    return [int(part) for part in version.partition("-")[0].split(".")]
