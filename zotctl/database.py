"""Implements `zotctl backup`, `verify` and `restore` with the code of `zotd.store`.

They work without a daemon, because they are needed most when the daemon does not start.
"""

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from zotctl import output
from zotd import config, paths
from zotd.client import humanize
from zotd.client.errors import ClientError
from zotd.client.humanize import counted
from zotd.core.ports import StorageError
from zotd.sanitize import one_line
from zotd.store import backup as copies
from zotd.store.opening import FILE
from zotd.store.verification import verify as verified


def backup(args: argparse.Namespace) -> int:
    """Copy the database to `args.file` and return the exit code."""
    target = Path(args.file)
    with _sentences(), output.progress("copying"):
        size = copies.backup(_database(), target, force=args.force)
    if args.json:
        output.print_json({"v": 1, "file": str(target), "size_bytes": size})
    else:
        print(one_line(f"copied all sessions to {target} ({humanize.size(size)})"))
    return 0


def verify(args: argparse.Namespace) -> int:
    """Check `args.file`, or the database, and return the exit code: 1 if it is damaged."""
    path = _database() if args.file is None else Path(args.file)
    with _sentences(), output.progress("verifying"):
        report = verified(path)
    if args.json:
        output.print_json({"v": 1, "file": str(path), **msgspec.to_builtins(report)})
    else:
        for problem in report.problems:
            print(one_line(problem))
        counts = {"session": report.sessions, "record": report.records, "message": report.messages}
        figures = ", ".join(counted(number, word) for word, number in counts.items())
        verdict = counted(len(report.problems), "problem") if report.problems else "no problems found"
        print(one_line(f"{path}: {figures}, {humanize.size(report.size_bytes)}: {verdict}"))
    return 1 if report.problems else 0


def restore(args: argparse.Namespace) -> int:
    """Replace the database with `args.file` and return the exit code."""
    saved = Path(args.file)
    with _sentences(), output.progress("restoring"):
        target = _database()
        problems = verified(saved).problems
        if problems and not args.force:
            raise ClientError(
                f"{saved} is damaged: {problems[0]}; run zotctl verify for details, or use --force to restore it anyway"
            )
        paths.make_private_dir(paths.zot_home(os.environ))
        aside = copies.restore(saved, target)
    if args.json:
        output.print_json({"v": 1, "file": str(saved), "before": None if aside is None else str(aside)})
        return 0
    print(one_line(f"restored all sessions from {saved}"))
    if aside is not None:
        print(one_line(f"the previous sessions are in {aside}; delete it when you no longer need it"))
    return 0


def _database() -> Path:
    home = Path(paths.zot_home(os.environ))
    try:
        url = config.load(home / "config.toml", os.environ).config.journal.url
    except config.ConfigError:
        url = None  # what stops a daemon must not stop a backup
    if url is not None:
        raise ClientError(
            "the sessions are in PostgreSQL ([journal] url): use its own programs, such as pg_dump, see docs/postgresql.md"
        )
    return home / FILE


@contextmanager
def _sentences() -> Iterator[None]:
    """Turn errors of the store into `ClientError`."""
    try:
        yield
    except (StorageError, paths.UnsafePathError) as error:
        raise ClientError(str(error)) from error
