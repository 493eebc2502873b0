"""`zotctl trust`: manages the directories whose code may run (`docs/extensions.md`)."""

import argparse
import os
import sys

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client import place
from zotd.client.blocking import Json
from zotd.client.errors import ClientError
from zotd.client.fields import children, strings, text
from zotd.sanitize import one_line

EPILOG = """\
examples:
  zotctl trust list
  zotctl trust grant ~/work/shop      show what would run, and ask
  zotctl trust grant --yes .          do not ask; for scripts
  zotctl trust revoke .

A directory can contain extensions, skills, configuration and MCP servers (.zot, .mcp.json). They are used only after
you trust the directory, and only as they are at that time: after a change you are asked again. To trust a directory
for one invocation only, run: zot --trust
"""


def add(commands: Subparsers) -> None:
    """Register `trust` and its actions."""
    parser = commands.add_parser("trust", help="manage the directories whose code may run", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="list trusted directories", epilog="example: zotctl trust list --json")
    listing.set_defaults(run=_list)
    grant = actions.add_parser("grant", help="trust a directory", epilog="example: zotctl trust grant .")
    grant.add_argument("path", nargs="?", default=".", metavar="PATH", help="the directory (default: the current one)")
    grant.add_argument("-y", "--yes", action="store_true", help="do not ask; required without a terminal")
    grant.set_defaults(run=_grant)
    revoke = actions.add_parser("revoke", help="stop trusting a directory", epilog="example: zotctl trust revoke .")
    revoke.add_argument("path", nargs="?", default=".", metavar="PATH", help="the directory (default: the current one)")
    revoke.set_defaults(run=_revoke)
    for action in (listing, grant, revoke):
        action.add_argument("--json", action="store_true", help="print the result as JSON")


def _list(args: argparse.Namespace) -> int:
    with link.connect("zotctl", role="admin") as connection:
        found = children(connection.call("trust.list"), "workspaces")
    if args.json:
        output.print_json({"v": 1, "workspaces": found})
        return 0
    rows = [[text(one, "path"), text(one, "state"), ", ".join(strings(one, "items"))] for one in found]
    output.print_table(["DIRECTORY", "STATE", "CHANGED"], rows)
    return 0


def _grant(args: argparse.Namespace) -> int:
    path = place.of(os.environ).real_path(str(args.path))
    with link.connect("zotctl", role="admin") as connection:
        workspace = children(connection.call("trust.list", path=path), "workspaces")[0]
        if text(workspace, "state") != "trusted":
            _show(workspace)
            if not args.yes and not _agrees():
                raise ClientError(f"{path} is not trusted")
            # The digest limits the grant to the files that were shown, in case they have changed since.
            workspace = connection.call("trust.grant", path=path, digest=text(workspace, "digest"))
    if args.json:
        output.print_json({"v": 1, **workspace})
    else:
        print(one_line(f"{path} is trusted"))
    return 0


def _revoke(args: argparse.Namespace) -> int:
    path = place.of(os.environ).real_path(str(args.path))
    with link.connect("zotctl", role="admin") as connection:
        connection.call("trust.revoke", path=path)
    if args.json:
        output.print_json({"v": 1, "path": path})
    else:
        print(one_line(f"{path} is no longer trusted; processes started from it were stopped"))
    return 0


def _show(workspace: Json) -> None:
    items = strings(workspace, "items")
    if not items:
        head = "it contains no code yet; you will be asked about code that is added later"
    elif text(workspace, "state") == "changed":
        head = "changed since it was trusted:"
    else:
        head = "these would run, or give the agent instructions:"
    lines = [head, *(f"  {item}" for item in items)]
    commands = strings(workspace, "commands")
    lines += ["these commands would be started:", *(f"  {command}" for command in commands)] if commands else []
    for line in lines:
        sys.stderr.write(f"{one_line(line)}\n")


def _agrees() -> bool:
    """Ask on the terminal; raises `ClientError` without one, because the files were not shown to a person."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ClientError(
            "cannot ask for confirmation without a terminal; inspect the files, then run: zotctl trust grant --yes PATH"
        )
    sys.stderr.write("trust this directory? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}
