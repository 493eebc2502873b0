"""The little that `ping` and `status` need of a command line."""

import os
import sys
from collections.abc import Sequence

from zotd.client import place
from zotd.client.blocking import Connection
from zotd.sanitize import harmless


def flags(argv: Sequence[str], usage: str, known: frozenset[str]) -> frozenset[str]:
    """The flags in `argv`; ends the program for `-h` (0) and for anything unknown (2)."""
    if "-h" in argv or "--help" in argv:
        print(harmless(usage))
        raise SystemExit(0)
    unknown = [arg for arg in argv if arg not in known]
    if unknown:
        sys.stderr.write(harmless(f"{usage}\nzotctl: unknown argument: {unknown[0]}\n"))
        raise SystemExit(2)
    return frozenset(argv)


def connect(path: str, timeout_s: float, *, autostart: bool) -> Connection:
    """A connection to the daemon at `path`, or at the URL that it is; raises what `open` and `ensure` of a place raise.

    `timeout_s` is for this machine's kernel: a network in between takes its own time.
    """
    where = place.of(os.environ, path=path)
    return Connection(where.ensure() if autostart else where.open(None if where.is_remote else timeout_s))


def socket_path() -> str:
    """Where the daemon of this environment listens; a URL when that is on another machine."""
    return place.of(os.environ).name
