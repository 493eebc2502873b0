"""The little that `ping` and `status` need of a command line."""

import os
import sys
from collections.abc import Sequence

from zotd import paths
from zotd.client.blocking import Connection, open_socket


def flags(argv: Sequence[str], usage: str, known: frozenset[str]) -> frozenset[str]:
    """The flags in `argv`; ends the program for `-h` (0) and for anything unknown (2)."""
    if "-h" in argv or "--help" in argv:
        print(usage)
        raise SystemExit(0)
    unknown = [arg for arg in argv if arg not in known]
    if unknown:
        sys.stderr.write(f"{usage}\nzotctl: there is no {unknown[0]} here\n")
        raise SystemExit(2)
    return frozenset(argv)


def connect(path: str, timeout_s: float, *, autostart: bool) -> Connection:
    """A connection to the daemon at `path`; raises what `open_socket` and `ensure` raise."""
    if not autostart:
        return Connection(open_socket(path, timeout_s))
    from zotd.client.autostart import ensure  # noqa: PLC0415  (costs what this module exists to save)

    return Connection(ensure(path, os.environ))


def socket_path() -> str:
    """Where the daemon of this environment listens."""
    return paths.socket_path(os.environ)
