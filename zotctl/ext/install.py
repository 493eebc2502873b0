"""`zotctl ext install`, `remove`, `enable` and `disable`: which extensions the user has."""

import argparse
import os
import sys

from zotctl import link, output
from zotctl.commands import Commands
from zotd.client import place
from zotd.client.blocking import Json
from zotd.client.fields import text

INSTALL_S = 420.0
"""The daemon gives git 300 s to fetch and 60 s for the rest."""

REMOVE_S = 60.0
"""Ending its processes takes 3.3 s, and a directory may hold thousands of files."""

EXAMPLES = """\
examples:
  zotctl ext install ~/work/weather
  zotctl ext install https://git.example.org/ann/weather@v1.2

Nothing is built and nothing is run. A directory is copied, of a repository one commit is fetched; @ (or #) names a
branch, a tag or a commit. Installing again from the same place updates it.
"""

CHANGES = {
    "remove": ("uninstall an extension", "{name} is removed"),
    "enable": ("switch an extension on, in every directory", "{name} is switched on"),
    "disable": ("switch an extension off, in every directory; it stays installed", "{name} is switched off"),
}
"""What takes a name and nothing else: help, and what is said afterwards."""


def add(actions: Commands) -> None:
    """The four."""
    parser = actions.add_parser("install", help="install an extension from a directory or a git URL", epilog=EXAMPLES)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("source", metavar="PATH|URL[@REF]")
    parser.add_argument("--replace", action="store_true", help="take the place of one that came from elsewhere")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(run=_install)
    for action, (summary, _) in CHANGES.items():
        parser = actions.add_parser(action, help=summary, epilog=f"example: zotctl ext {action} weather")
        parser.add_argument("name", metavar="EXTENSION")
        parser.add_argument("--json", action="store_true")
        parser.set_defaults(run=_change, action=action)


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
    print(output.one_line(f"installed {name} {version}".rstrip() + f" in {text(installed, 'directory')}{commit}"))
    print("zotctl ext reload  starts it here; elsewhere it starts with the next session")
    return 0


def _change(args: argparse.Namespace) -> int:
    with link.connect("zotctl", role="admin") as connection:
        connection.call(f"ext.{args.action}", name=args.name, timeout_s=REMOVE_S)
    if args.json:
        output.print_json({"v": 1, "name": args.name})
    else:
        print(output.one_line(CHANGES[args.action][1].format(name=args.name)))
    return 0


def _absolute(source: str) -> str:
    """A path as the daemon, which works elsewhere, finds it; a URL as it is.

    URLs, `host:path` and what git would take for a program have a colon before the first slash.
    """
    if ":" in source.partition("/")[0]:
        return source
    where = place.of(os.environ)
    return where.real_path(source) if where.is_remote else os.path.abspath(source)


def _tell_progress(event: Json) -> None:
    if event.get("type") == "notice" and sys.stderr.isatty():
        sys.stderr.write(f"{output.one_line(text(event, 'text'))} …\n")
