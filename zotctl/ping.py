"""`zotctl ping`: checks whether the daemon answers."""

import sys
from collections.abc import Sequence

from zotctl import fast_cli
from zotd.client.errors import ClientError

USAGE = """\
usage: zotctl ping [--autostart]

Check whether the daemon answers. Exit code 0 if it does, otherwise 1. --autostart starts it if none runs.

example: zotctl ping && echo alive"""

ANSWER_S = 2.0
"""Time limit in seconds; longer than the worst pause of a busy daemon."""


def main(argv: Sequence[str]) -> int:
    """Run with the arguments after `ping` and return the exit code."""
    flags = fast_cli.flags(argv, USAGE, frozenset({"--autostart"}))
    try:
        with fast_cli.connect(fast_cli.socket_path(), ANSWER_S, autostart="--autostart" in flags) as connection:
            connection.call("ping", timeout_s=ANSWER_S)
    except ClientError as error:
        from zotd.sanitize import harmless  # noqa: PLC0415  (only a failure needs it)

        sys.stderr.write(f"zotctl: {harmless(str(error))}\n")  # it may quote another process
        return 1
    print("pong")
    return 0
