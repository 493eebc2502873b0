"""Command line parsing for `ping` and `status`, without argparse."""

import os
import sys
from collections.abc import Sequence

from zotd.client import place
from zotd.client.blocking import Connection
from zotd.sanitize import harmless


def flags(argv: Sequence[str], usage: str, known: frozenset[str]) -> frozenset[str]:
    """Return the flags in `argv`. Exits with 0 for `-h`, and with 2 for an unknown argument."""
    if "-h" in argv or "--help" in argv:
        print(harmless(usage))
        raise SystemExit(0)
    unknown = [arg for arg in argv if arg not in known]
    if unknown:
        sys.stderr.write(harmless(f"{usage}\nzotctl: unknown argument: {unknown[0]}\n"))
        raise SystemExit(2)
    return frozenset(argv)


def connect(path: str, timeout_s: float, *, autostart: bool) -> Connection:
    """Connect to the daemon at `path`, a socket or a URL; raises the `ClientError`s of `Place.open` and `ensure`.

    `timeout_s` limits local connections only; remote ones have the limits of `zotd.client.remote`.
    """
    where = place.of(os.environ, path=path)
    return Connection(where.ensure() if autostart else where.open(None if where.is_remote else timeout_s))


def socket_path() -> str:
    """Return the socket path of this environment's daemon, or its URL if it is remote."""
    return place.of(os.environ).name
