"""`zot --worktree [NAME]`: starts a session in a git worktree, which is created if there is none of that name.

Only imported for that flag.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from zotctl import output
from zotctl.worktree.git_command import git
from zotctl.worktree.made_up_names import made_up
from zotctl.worktree.repository import PREFIX, Worktrees
from zotctl.worktree.set_up import set_up
from zotctl.worktree.trusting import pass_on
from zotd.cli import WORKTREE_FLAGS
from zotd.client import place
from zotd.client.errors import ClientError
from zotd.client.options import parser
from zotd.sanitize import harmless, one_line


@dataclass(frozen=True, slots=True)
class EnteredWorktree:
    """A worktree for a session.

    Attributes:
        path: the directory of the worktree.
        cwd: where the session works: the directory of the worktree that corresponds to the user's.
        main: the directory of the main worktree.
    """

    name: str
    path: str
    cwd: str
    main: str


def main(argv: Sequence[str], run: Callable[[list[str]], int]) -> int:
    """Call `run` with the arguments of a session in the worktree that `argv` names, and return the exit code.

    Then say on standard error where the worktree is.
    """
    args = parser().parse_args(argv)  # exits for --help and for bad usage, before anything is made
    try:
        entered = _enter(args, os.environ)
    except ClientError as error:
        sys.stderr.write(f"zot: {harmless(str(error))}\n")
        return 1
    rest, prompt = _without_flag(argv)
    try:
        return run([*rest, "--cwd", entered.cwd, *prompt])
    finally:
        _say_where(entered, os.getcwd())


def _enter(args: argparse.Namespace, env: Mapping[str, str]) -> EnteredWorktree:
    """Find the worktree, or create and prepare it. Raises ClientError."""
    for flag, is_given in (
        ("--session", args.session),
        ("--resume ID", args.resume),
        ("--list-models", args.list_models),
    ):
        if is_given:
            raise ClientError(f"--worktree starts a session in a worktree; it cannot be used with {flag}")
    where = place.of(env)
    if where.is_remote:
        raise ClientError(f"--worktree makes a worktree on this machine, and {where.name} is on another one")
    cwd = where.directory(args.cwd)
    assert cwd is not None
    worktrees = Worktrees(cwd, env)
    below = git(cwd, "rev-parse", "--show-prefix").strip("\n/")
    name = args.worktree or made_up(worktrees.is_free)
    is_new = name not in worktrees.names()
    if is_new:
        with output.progress(f"creating the worktree {name}"):
            path = worktrees.create(name, "HEAD", cwd)
        sys.stderr.write(f"{one_line(f'new worktree {name} on the branch {PREFIX}{name}: {path}')}\n")
        set_up(name, path, worktrees.main, env)
    else:
        path = worktrees.path(name)
    inner = os.path.join(path, below)
    entered = EnteredWorktree(name, path, inner if below and os.path.isdir(inner) else path, worktrees.main)
    if is_new:
        pass_on(os.path.join(worktrees.main, below).rstrip(os.sep), entered.cwd)
    return entered


def _without_flag(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the arguments without `WORKTREE_FLAGS` and their value: those before `--`, and those from it on."""
    rest: list[str] = []
    words = list(argv)
    while words and words[0] != "--":
        word = words.pop(0)
        if word in WORKTREE_FLAGS:
            if words and not words[0].startswith("-"):
                words.pop(0)
        elif not word.startswith(("-w", "--worktree=")):
            rest.append(word)
    return rest, words


def _say_where(entered: EnteredWorktree, cwd: str) -> None:
    name = shlex.quote(entered.name)
    is_here = cwd == entered.main or cwd.startswith(entered.main + os.sep)
    there = "" if is_here else f"cd {shlex.quote(entered.main)} && "
    where = f"the worktree {entered.name} is on the branch {PREFIX}{entered.name} in {entered.path}"
    how = (
        f"to return: {there}zot -w {name}; to look at its work: {there}zotctl worktree diff {name}; "
        f"to take it back: {there}zotctl worktree merge {name}"
    )
    with suppress(OSError):  # the terminal is gone
        sys.stderr.write(f"{one_line(where)}\n{one_line(how)}\n")
