"""`zotctl ext install`, `remove`, `enable` and `disable`: manages the installed extensions."""

import argparse
import os
import sys

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client import place
from zotd.client.blocking import Json
from zotd.client.errors import ClientError
from zotd.client.fields import text
from zotd.sanitize import one_line

INSTALL_S = 420.0
"""Time limit in seconds. The daemon allows git 300 s to fetch and 60 s for the rest."""

REMOVE_S = 60.0
"""Time limit in seconds. Stopping the processes takes up to 3.3 s, and a directory may have thousands of files."""

EXAMPLES = """\
examples:
  zotctl ext install ~/work/weather
  zotctl ext install https://git.example.org/ann/weather@v1.2

Nothing is built or run. A directory is copied; from a repository, one commit is fetched. @ (or #) selects a branch, tag
or commit. Installing again from the same source updates the extension and keeps its data in $ZOT_HOME/data/NAME.
"""

REMOVING = """\
examples:
  zotctl ext remove weather             ask for confirmation
  zotctl ext remove --yes weather       do not ask; for scripts
  zotctl ext remove --data weather      also delete its data in $ZOT_HOME/data/weather
"""

CHANGES = {
    "enable": ("enable an extension in every directory", "{name} is enabled"),
    "disable": ("disable an extension in every directory; keeps it installed", "{name} is disabled"),
}
"""Actions whose only argument is a name: help and result message."""


def add(actions: Subparsers) -> None:
    """Register the four actions."""
    _add_install(actions)
    _add_remove(actions)
    for action, (summary, _) in CHANGES.items():
        parser = actions.add_parser(action, help=summary, epilog=f"example: zotctl ext {action} weather")
        parser.add_argument("name", metavar="EXTENSION", help="name of the extension")
        parser.add_argument("--json", action="store_true", help="print the result as JSON")
        parser.set_defaults(run=_change, action=action)


def _add_remove(actions: Subparsers) -> None:
    parser = actions.add_parser("remove", help="uninstall an extension; keeps its data", epilog=REMOVING)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("name", metavar="NAME", help="name of the extension")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask; required without a terminal")
    parser.add_argument("--data", action="store_true", help="also delete its data")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_remove)


def _add_install(actions: Subparsers) -> None:
    parser = actions.add_parser("install", help="install an extension from a directory or a git URL", epilog=EXAMPLES)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("source", metavar="PATH|URL[@REF]", help="a directory, or a git repository")
    parser.add_argument(
        "--replace",
        "--force",
        action="store_true",
        help="replace an extension from another source, or one with local changes; keeps a copy of changed files",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_install)


def _install(args: argparse.Namespace) -> int:
    source = _absolute(str(args.source))
    with link.connect("zotctl", role="admin") as connection:
        installed = connection.call(
            "ext.install", source=source, replace=args.replace, timeout_s=INSTALL_S, hear=_tell_progress
        )
    if args.json:
        output.print_json({"v": 1, **installed})
        return 0
    name, version = text(installed, "name"), text(installed, "version")
    commit = f", commit {text(installed, 'commit')[:12]}" if text(installed, "commit") else ""
    print(one_line(f"installed {name} {version}".rstrip() + f" in {text(installed, 'directory')}{commit}"))
    if text(installed, "rights"):
        print(one_line(f"it {text(installed, 'rights')}"))
    if text(installed, "kept"):
        print(one_line(f"the previous files are kept in {text(installed, 'kept')}"))
    print("to start it here, run: zotctl ext reload; elsewhere it starts with the next session")
    return 0


def _remove(args: argparse.Namespace) -> int:
    name = str(args.name)
    if not args.yes and not _agrees(name, with_data=args.data):
        raise ClientError(f"{one_line(name)} was not removed")
    with link.connect("zotctl", role="admin") as connection:
        removed = connection.call("ext.remove", name=name, data=args.data, timeout_s=REMOVE_S)
    if args.json:
        output.print_json({"v": 1, **removed})
        return 0
    left = f"; its data is still in {text(removed, 'data')}" if text(removed, "data") else ""
    kept = (
        f"; it was not installed by zot; its files were moved to {text(removed, 'kept')}"
        if text(removed, "kept")
        else ""
    )
    print(one_line(f"{name} is removed{left}{kept}"))
    return 0


def _agrees(name: str, *, with_data: bool) -> bool:
    """Ask on the terminal; raises `ClientError` without one."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ClientError(
            f"cannot ask for confirmation without a terminal; to remove it, run: zotctl ext remove --yes {name}"
        )
    what = "and delete its data" if with_data else "and keep its data"
    sys.stderr.write(one_line(f"remove {name} {what}?") + " [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _change(args: argparse.Namespace) -> int:
    with link.connect("zotctl", role="admin") as connection:
        connection.call(f"ext.{args.action}", name=args.name, timeout_s=REMOVE_S)
    if args.json:
        output.print_json({"v": 1, "name": args.name})
    else:
        print(one_line(CHANGES[args.action][1].format(name=args.name)))
    return 0


def _absolute(source: str) -> str:
    """Make a path absolute, because the daemon has another working directory; return a URL unchanged.

    URLs, `host:path` and git's `ext::` transports have a colon before the first slash.
    """
    if ":" in source.partition("/")[0]:
        return source
    where = place.of(os.environ)
    return where.real_path(source) if where.is_remote else os.path.abspath(source)


def _tell_progress(event: Json) -> None:
    if event.get("type") == "notice" and sys.stderr.isatty():
        sys.stderr.write(f"{one_line(text(event, 'text'))} …\n")
