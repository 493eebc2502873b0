"""`zotctl mcp logs`: the log of a server, which is that of its extension."""

import argparse

from zotctl.commands import Subparsers
from zotctl.ext import logs
from zotctl.mcp.listing import PREFIX


def add(actions: Subparsers) -> None:
    """Register `logs`."""
    parser = actions.add_parser("logs", help="print a server's log", epilog="example: zotctl mcp logs files -f")
    parser.add_argument("server", metavar="MCP_SERVER", help="its name")
    logs.add_flags(parser)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    args.name = PREFIX + str(args.server)
    return logs.run(args)
