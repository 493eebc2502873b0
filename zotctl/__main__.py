"""The `zotctl` command. `ping` and `status` must answer at once, so nothing else is loaded for them: no argparse."""

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from zotd.client.environment import without_flags

THIN = {"ping": "zotctl.ping", "status": "zotctl.status"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run `zotctl` with `argv` (default: the command line's) and return its exit code: 0, 1, 2 for bad usage, 130."""
    if sys.stdout is None:  # it was closed
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  (for the whole program)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a path that is not UTF-8; in JSON that is an escape as well
    args, variables = without_flags(sys.argv[1:] if argv is None else argv)
    os.environ.update(variables)
    try:
        code = _run(args)
        sys.stdout.flush()
    except OSError as error:  # a full disk, or nobody who reads
        from zotctl.output import lost  # noqa: PLC0415  (a program that can write has not to wait for it)

        return lost("zotctl", error)
    return code


def _run(args: Sequence[str]) -> int:
    if args and args[0] in THIN:
        try:
            return int(import_module(THIN[args[0]]).main(args[1:]))
        except KeyboardInterrupt:  # another machine may keep us waiting for seconds
            return 130
    return int(import_module("zotctl.main").main(args))


if __name__ == "__main__":
    sys.exit(main())
