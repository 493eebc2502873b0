"""The `zot` command: looks at its arguments and loads the one program that they mean, and nothing else.

Programs are named as strings, because this module may not depend on what is above it, and must not load what is slow.
"""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import takewhile

from zotd.client.environment import HOST, without_flags

ONE_SHOT = "zotctl.oneshot"
CHAT = "zottui.__main__"
RPC = "zotd.embed.rpc"
BRIDGE = "zotctl.bridge"
ACP = "zotd.bridges.acp.__main__"
ZOTCTL = "zotctl.__main__"

INTERRUPTED = 130
"""The exit code after Ctrl-C, as shells have it."""

ONE_SHOT_FLAGS = frozenset({"-p", "--print", "--json", "--list-models"})

INFO_FLAGS = frozenset({"-h", "--help", "-v", "--version"})


def main(argv: Sequence[str] | None = None) -> int:
    """Run `zot` with `argv` (default: the command line's) and return its exit code."""
    if sys.stdout is None:  # it was closed
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  (for the whole program)
    args, variables = without_flags(sys.argv[1:] if argv is None else argv)
    os.environ.update(variables)
    program = _program(args)
    if program == RPC and os.environ.get(HOST):
        sys.stderr.write("zot: `zot rpc` is a session of its own, here; for one of another machine: --session ID\n")
        return 2
    if program in {RPC, BRIDGE}:
        args = [arg for number, arg in enumerate(args) if arg != "--rpc" and (number, arg) != (0, "rpc")]
    if program == ACP:
        args = args[1:]
    try:
        return int(import_module(program).main(args))
    except KeyboardInterrupt:  # while it was still being imported; from then on each sees to that itself
        return INTERRUPTED


def _program(args: list[str]) -> str:
    if args[:1] == ["ext"]:
        return ZOTCTL
    if args[:1] == ["acp"]:
        return ACP
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
