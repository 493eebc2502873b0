"""The `zotctl` command.

`ping` and `status` are run by monitors and prompts, so they load neither argparse nor the other commands.
"""

import io
import os
import sys

from zotd.client.environment import without_flags

TYPE_CHECKING = False  # as `typing` has it: `zotctl ping` imports neither that nor `collections`, which take 2 ms
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

THIN = {"ping": "zotctl.ping", "status": "zotctl.status"}


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run `zotctl` with `argv` (default: the command line's) and return its exit code: 0, 1, 2 for bad usage, 130."""
    if sys.stdout is None:  # closed by the parent
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  (open as long as the program runs)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # for paths that are not UTF-8; valid in JSON strings too
    args, variables = without_flags(sys.argv[1:] if argv is None else argv)
    os.environ.update(variables)
    try:
        code = _run(args)
        sys.stdout.flush()
    except OSError as error:  # a full disk or a closed pipe
        from zotctl.output import lost  # noqa: PLC0415  (only needed on failure)

        return lost("zotctl", error)
    return code


def _run(args: "Sequence[str]") -> int:
    if args and args[0] in THIN:
        try:
            return int(_module(THIN[args[0]]).main(args[1:]))
        except KeyboardInterrupt:  # a remote daemon can take seconds to answer
            return 130
    return int(_module("zotctl.main").main(args))


def _module(name: str) -> "ModuleType":
    __import__(name)
    return sys.modules[name]


if __name__ == "__main__":
    sys.exit(main())
