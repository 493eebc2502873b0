"""The `zot` command: selects one of its programs by the arguments and imports only that one.

Programs are named by strings: this module must not depend on the layers above it, nor load what is slow to import.
"""

import os
import re
import sys
from collections.abc import Sequence
from importlib import import_module
from itertools import takewhile

from zotd.client.environment import HOST, without_flags

ONE_SHOT = "zotctl.oneshot"
FLEET = "zotctl.oneshot_fleet"
CHAT = "zottui.__main__"
RPC = "zotd.embed.rpc"
BRIDGE = "zotctl.bridge"
ACP = "zotd.bridges.acp.__main__"
ZOTCTL = "zotctl.__main__"
WORKTREE = "zotctl.worktree.session"

INTERRUPTED = 130
"""Exit code after Ctrl-C, as in shells: 128 + SIGINT."""

ONE_SHOT_FLAGS = frozenset({"-p", "--print", "--json", "--list-models"})

WORKTREE_FLAGS = ("-w", "--worktree")
"""How the words begin that name a worktree."""

PLACE = re.compile(r"((?:[A-Za-z0-9_][\w.\-]*@)?[A-Za-z0-9_][\w.\-]*):([\w.\-]*)")
"""A host for ssh, and a session of it or none, as `scp` writes hosts: `box:` or `me@box:tests`."""

INFO_FLAGS = frozenset({"-h", "--help", "-v", "--version"})


def main(argv: Sequence[str] | None = None) -> int:
    """Run `zot` with `argv` (default: the command line's) and return its exit code."""
    if sys.stdout is None:  # closed by the caller
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  (for the whole program)
    args, variables = without_flags(sys.argv[1:] if argv is None else argv)
    os.environ.update(variables)
    args = _with_host(args)
    program = _program(args)
    has_worktree = any(word.startswith(WORKTREE_FLAGS) for word in _flags(args))
    has_labels = any(word.partition("=")[0] == "--label" for word in _flags(args))
    refusal = _refusal(program, has_worktree=has_worktree, has_labels=has_labels)
    if refusal:
        sys.stderr.write(f"zot: {refusal}\n")
        return 2
    if program in {RPC, BRIDGE}:
        args = [arg for number, arg in enumerate(args) if arg != "--rpc" and (number, arg) != (0, "rpc")]
    if program == ACP:
        args = args[1:]
    try:
        if program in {CHAT, ONE_SHOT} and has_worktree:
            return int(import_module(WORKTREE).main(args, lambda rest: int(import_module(program).main(rest))))
        return int(import_module(program).main(args))
    except KeyboardInterrupt:  # during the import; from then on the programs handle it themselves
        return INTERRUPTED


def _with_host(args: list[str]) -> list[str]:
    """Set the variable of the host, and return a flag for the session, if the first word names them and no other follows."""
    is_alone = len(args) == 1 or (len(args) > 1 and args[1].startswith("-"))
    found = PLACE.fullmatch(args[0]) if is_alone else None
    if found is None:
        return args
    host, session = found.groups()
    os.environ[HOST] = host
    return [*(["--session", session] if session else []), *args[1:]]


def _program(args: list[str]) -> str:
    if args[:1] == ["ext"] or _is_login(args):
        return ZOTCTL
    if args[:1] == ["acp"]:
        return ACP
    flags = _flags(args)
    if args[:1] == ["rpc"] or "--rpc" in flags:
        return BRIDGE if any(flag.partition("=")[0] == "--session" for flag in flags) else RPC
    if "--fleet" in flags and not flags & INFO_FLAGS:
        return FLEET
    if flags & (ONE_SHOT_FLAGS | INFO_FLAGS):
        return ONE_SHOT
    # Without a terminal for input there is no chat: `git diff | zot "review this"` prints a reply.
    return CHAT if sys.stdin is not None and sys.stdin.isatty() else ONE_SHOT


def _refusal(program: str, *, has_worktree: bool, has_labels: bool) -> str:
    """Return why the program cannot do what it is asked to; empty if it can."""
    if program == RPC and os.environ.get(HOST):
        return "`zot rpc` runs a session on this machine; add --session ID to use one of another machine"
    if program in {CHAT, ONE_SHOT} and has_labels:
        return "--label is for `zot -p --fleet`"
    if program in {RPC, BRIDGE, ACP} and has_worktree:
        return "--worktree is for a chat or -p; create one with `zotctl worktree add NAME`, and start this in it"
    return ""


def _flags(args: list[str]) -> set[str]:
    """Return the words that may be flags: argparse never takes a word that begins with a dash as a value."""
    return set(takewhile(lambda arg: arg != "--", args))


def _is_login(args: list[str]) -> bool:
    """Whether it is `zot login VENDOR`, and not a prompt without quotes such as `zot login fails on safari`."""
    return args[:1] in (["login"], ["logout"]) and sum(not arg.startswith("-") for arg in args) <= 2


if __name__ == "__main__":
    sys.exit(main())
