"""`zotctl adapters`: lists the agents of others that can run a session, and says which are installed here."""

import argparse
import os
import sys

from zotctl import output
from zotctl.commands import Subparsers
from zotd import paths
from zotd.client.errors import ClientError
from zotd.sanitize import one_line

EPILOG = """\
examples:
  zotctl adapters
  zot --agent claude "tidy up"

An adapter is a program that speaks the Agent Client Protocol (ACP) for an agent. [adapters.NAME] in config.toml adds one.
"""


def add(commands: Subparsers) -> None:
    """Register `adapters`."""
    parser = commands.add_parser("adapters", help="list other agents that can run a session", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    from pathlib import Path  # noqa: PLC0415  (with zotd.config 50 ms, only for this command)

    from zotd import config  # noqa: PLC0415
    from zotd.adapters.catalog import known_adapters  # noqa: PLC0415

    try:
        loaded = config.load(Path(paths.zot_home(os.environ)) / "config.toml", os.environ)
    except config.ConfigError as error:
        raise ClientError(str(error)) from error
    found = [
        {
            "name": one.name,
            "title": one.title,
            "command": list(one.command),
            "program": one.found(os.environ.get("PATH")),
            "install": one.install,
            "login": one.login,
        }
        for one in known_adapters(loaded.config.adapters).values()
    ]
    if args.json:
        output.print_json({"v": 1, "adapters": found})
        return 0
    rows = [
        [
            one_line(str(one["name"])),
            one_line(str(one["title"])),
            one_line(str(one["program"] or "-")),
            "" if one["program"] else one_line(str(one["install"])),
        ]
        for one in found
    ]
    output.print_table(["NAME", "AGENT", "PROGRAM", "INSTALL WITH"], rows)
    if not any(one["program"] for one in found):
        sys.stderr.write("zotctl: none of them is on your PATH\n")
    return 0
