"""`zotctl ext logs`: prints an extension's log: its stderr and the daemon's remarks about it."""

import argparse
import os
import sys

from zotctl import link, output
from zotctl.commands import Subparsers
from zotctl.ext import scope
from zotd import paths
from zotd.client import place
from zotd.client.blocking import Json
from zotd.client.errors import ClientError, NoAnswerError, NotRunningError
from zotd.client.fields import text
from zotd.client.interrupts import Watch
from zotd.sanitize import harmless

LOG_BYTES = 512 * 1024
"""Most bytes read from the end of a log without a daemon."""

SHOWN = 200
"""Default of --lines."""


def add(actions: Subparsers) -> None:
    """Register `logs`."""
    parser = actions.add_parser("logs", help="print an extension's log", epilog="example: zotctl ext logs weather -f")
    parser.add_argument("name", metavar="EXTENSION", help="name of the extension")
    add_flags(parser)
    parser.set_defaults(run=run)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of `run`."""
    parser.add_argument("-f", "--follow", action="store_true", help="keep printing new lines until Ctrl-C")
    parser.add_argument(
        "-n", "--lines", type=int, default=SHOWN, metavar="N", help=f"maximum number of lines ({SHOWN})"
    )
    scope.add_flags(parser)
    parser.add_argument("--json", action="store_true", help="print the path and the text as JSON; not with --follow")


def run(args: argparse.Namespace) -> int:
    """Print the log of the extension `args.name`."""
    if args.follow and args.json:
        raise ClientError("--follow cannot be combined with --json")
    try:
        return _show(args)
    except (NotRunningError, NoAnswerError) as error:
        if args.follow or args.session is not None or place.of(os.environ).is_remote:
            raise
        page = _read(args.name, args.lines, error)
    if args.json:
        output.print_json({"v": 1, **page})
    else:
        _write(str(page["text"]))
    return 0


def _show(args: argparse.Namespace) -> int:
    watch = Watch(sys.stdout.fileno())
    with link.connect("zotctl", watch.wait, start=bool(args.follow)) as connection, watch:
        wanted = scope.chosen(connection, args)
        page = connection.call("ext.logs", wanted, name=args.name, lines=args.lines, follow=args.follow)
        if args.json:
            output.print_json({"v": 1, **page})
            return 0
        _write(text(page, "text"))
        if args.follow:
            for event in connection.events():
                _write(text(event, "text") if event.get("type") == "ext_log" else "")
    return 0


def _read(name: str, lines: int, without: ClientError) -> Json:
    """Read the end of the log from disk if no daemon answers; `without` is the error that says why."""
    if "/" in name or "\0" in name:
        raise ClientError("the name of an extension cannot contain a slash")
    path = os.path.join(paths.zot_home(os.environ), "logs", f"ext-{name}.log")
    try:
        with open(path, "rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - LOG_BYTES))
            data = file.read(LOG_BYTES)
    except FileNotFoundError:
        raise ClientError(f"no log found for extension {name}; {without}") from without
    except OSError as error:
        raise ClientError(f"cannot read {path}: {error.strerror}") from error
    kept = data.decode(errors="replace").splitlines(keepends=True)
    return {"path": path, "text": "".join(kept[-lines:] if lines > 0 else [])}


def _write(words: str) -> None:
    sys.stdout.write(harmless(words))
    sys.stdout.flush()
