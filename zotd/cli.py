"""The `zot` command: looks at its arguments and loads the one program that they mean, and nothing else.

Programs are named as strings, because this module may not depend on what is above it, and must not load what is slow.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import takewhile

ONE_SHOT = "zotctl.oneshot"
CHAT = "zottui.__main__"
RPC = "zotd.embed.rpc"
BRIDGE = "zotctl.bridge"
ZOTCTL = "zotctl.__main__"

LATER = ("acp",)
"""Subcommands that are promised and not there yet."""

ONE_SHOT_FLAGS = frozenset({"-p", "--print", "--json", "--list-models"})

INFO_FLAGS = frozenset({"-h", "--help", "-v", "--version"})


def main(argv: Sequence[str] | None = None) -> int:
    """Run `zot` with `argv` (default: the command line's) and return its exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    if args and args[0] in LATER:
        sys.stderr.write(f"zot: `zot {args[0]}` is not there yet; it comes with a later version\n")
        return 1
    program = _program(args)
    if program in {RPC, BRIDGE}:
        args = [arg for number, arg in enumerate(args) if arg != "--rpc" and (number, arg) != (0, "rpc")]
    return int(import_module(program).main(args))


def _program(args: list[str]) -> str:
    if args[:1] == ["ext"]:
        return ZOTCTL
    # Values need no care here: what begins with a dash is never taken for one.
    flags = set(takewhile(lambda arg: arg != "--", args))
    if args[:1] == ["rpc"] or "--rpc" in flags:
        return BRIDGE if any(flag.partition("=")[0] == "--session" for flag in flags) else RPC
    if flags & (ONE_SHOT_FLAGS | INFO_FLAGS):
        return ONE_SHOT
    # Without a terminal to type on there is no chat: `git diff | zot "review this"` prints an answer.
    return CHAT if sys.stdin is not None and sys.stdin.isatty() else ONE_SHOT


if __name__ == "__main__":
    sys.exit(main())
