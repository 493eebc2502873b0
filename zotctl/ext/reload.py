"""`zotctl ext reload`: restarts extensions with the files on disk, without interrupting sessions and runs."""

import argparse
import sys

from zotctl import link, output
from zotctl.commands import Subparsers
from zotctl.ext import saved, scope
from zotd.client.blocking import Json
from zotd.client.fields import strings
from zotd.sanitize import one_line

RELOAD_S = 90.0
"""Time limit in seconds. A new process has 15 s to get ready, the old one 30 s to finish calls and 3 s to exit."""

EPILOG = """\
examples:
  zotctl ext reload             all of this directory: start new ones, stop removed ones
  zotctl ext reload weather     only this one
  zotctl ext reload --watch     each one whose files are saved, until Ctrl-C

Exit code 1 if a restart failed; an extension that cannot be restarted keeps running as it was.
"""


def add(actions: Subparsers) -> None:
    """Register `reload`."""
    parser = actions.add_parser("reload", help="restart extensions with the files on disk", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("name", nargs="?", metavar="EXTENSION", help="only this one")
    scope.add_flags(parser)
    parser.add_argument(
        "--watch", action="store_true", help="reload an extension when one of its files is saved, until Ctrl-C"
    )
    parser.add_argument(
        "--json", action="store_true", help="print the result as JSON, with --watch one object for each reload"
    )
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    return saved.watch(args, _reload) if args.watch else _reload(args)


def _reload(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection, output.progress("restarting extensions"):
        wanted = scope.chosen(connection, args)
        report = connection.call("ext.reload", wanted, name=args.name, timeout_s=RELOAD_S)
    errors = strings(report, "errors")
    if args.json:
        output.print_json({"v": 1, **report})
        return 1 if errors else 0
    for line in _lines(report):
        print(one_line(line))
    for error in errors:
        sys.stderr.write(f"zotctl: {one_line(error)}\n")
    return 1 if errors else 0


def _lines(report: Json) -> list[str]:
    ready = strings(report, "ready")
    slow = [name for name in strings(report, "loaded") if name not in ready]
    found = {"ready": ready, "started, not ready yet": slow, "stopped": strings(report, "stopped")}
    lines = [f"{state}: {', '.join(names)}" for state, names in found.items() if names]
    if lines or strings(report, "errors"):
        return lines
    return ["no extensions are running there; they start with the first session"]
