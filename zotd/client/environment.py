"""The part of a program's environment that may leave it (`docs/protocol.md`)."""

from collections.abc import Mapping

TRUST = "ZOT_TRUST"
"""`1`: the code that the working directory brings along may run, for as long as this environment counts."""


def shared(env: Mapping[str, str]) -> dict[str, str]:
    """All variables but `ZOT*_TOKEN` and `ZOTCORE_*`: those are for one process alone."""
    return {name: value for name, value in env.items() if not _is_private(name)}


def _is_private(name: str) -> bool:
    return name.startswith("ZOTCORE_") or (name.startswith("ZOT") and name.endswith("_TOKEN"))
