"""`zotctl diagnostics`: lists the language servers that check edits."""

import argparse
import os

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client import humanize, place
from zotd.client.blocking import Json
from zotd.client.fields import children, strings, text

EPILOG = """\
examples:
  zotctl diagnostics
  zotctl diagnostics ~/work/shop --json

A server starts when a session in a trusted workspace edits a file of its language, and new errors come with the result of
the edit. docs/diagnostics.md says more.
"""


def add(commands: Subparsers) -> None:
    """Register `diagnostics`."""
    parser = commands.add_parser(
        "diagnostics", help="list language servers: those that run, and those that could", epilog=EPILOG
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("path", nargs="?", metavar="PATH", help="only servers of this directory (default: all)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    path = None if args.path is None else place.of(os.environ).real_path(str(args.path))
    with link.connect("zotctl") as connection:
        found = connection.call("diagnostics.list", cwd=path)
    servers, known = children(found, "servers"), children(found, "known")
    if args.json:
        output.print_json({"v": 1, "enabled": found.get("enabled"), "servers": servers, "known": known})
        return 0
    if not found.get("enabled"):
        print("edits are not checked: enabled = false in [diagnostics] of config.toml")
    rows = [_running(one) for one in servers] + [_could(one) for one in known]
    output.print_table(["NAME", "STATE", "MEMORY", "FILES", "ROOT OR PROGRAM", "REASON"], rows)
    return 0


def _running(one: Json) -> list[str]:
    memory, files = one.get("memory_bytes"), one.get("files")
    size = humanize.size(memory) if isinstance(memory, int) else "-"
    return [text(one, "name"), text(one, "state"), size, str(files), text(one, "root"), text(one, "reason")]


def _could(one: Json) -> list[str]:
    program = one.get("program")
    state = "installed" if program else "absent"
    return [text(one, "name"), state, "-", "-", str(program or "-"), f"for {' '.join(strings(one, 'languages'))}"]
