"""`zotctl agents`: lists the agent types of a directory."""

import argparse
import os
import sys

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client import place
from zotd.client.columns import clipped
from zotd.client.fields import children, strings, text
from zotd.sanitize import harmless, one_line

ABOUT_COLUMNS = 60
"""Most columns of a description in the table."""

EPILOG = """\
examples:
  zotctl agents
  zotctl agents ~/work/shop --json

An agent type is a Markdown file in .zot/agents, .claude/agents or $ZOT_HOME/agents. The model chooses one when it begins a
subagent.
"""


def add(commands: Subparsers) -> None:
    """Register `agents`."""
    parser = commands.add_parser("agents", help="list the agent types of a directory", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("path", nargs="?", default=".", metavar="PATH", help="the directory (default: the current one)")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    path = place.of(os.environ).real_path(str(args.path))
    with link.connect("zotctl") as connection:
        found = connection.call("agents.list", cwd=path)
    agents, problems = children(found, "agents"), strings(found, "problems")
    if args.json:
        output.print_json({"v": 1, "agents": agents, "problems": list(problems)})
        return 1 if problems else 0
    rows = [
        [
            text(one, "name"),
            text(one, "source"),
            text(one, "mode") or "-",
            text(one, "model") or "-",
            ", ".join(strings(one, "tools")) or "-",
            clipped(one_line(text(one, "description")), ABOUT_COLUMNS),
        ]
        for one in agents
    ]
    output.print_table(["NAME", "SOURCE", "MODE", "MODEL", "TOOLS", "DESCRIPTION"], rows)
    for sentence in [*(remark for one in agents for remark in strings(one, "remarks")), *problems]:
        sys.stderr.write(f"zotctl: {harmless(sentence)}\n")
    return 1 if problems else 0
