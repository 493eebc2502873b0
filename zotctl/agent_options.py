"""`zotctl agent-options`: what can be chosen of the other agent that runs a session, such as its mode or its model."""

import argparse

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client.blocking import Json
from zotd.client.errors import ClientError
from zotd.client.fields import text
from zotd.client.slash import AGENT_S
from zotd.sanitize import one_line
from zotd.wire.api import AgentOption, AgentOptionList
from zotd.wire.base import convert

EPILOG = """\
examples:
  zotctl agent-options --last                 list the options with their values; * marks the present one
  zotctl agent-options --last mode plan       set one, by the ids of the list
  zotctl agent-options --last --json

They are the agent's own, and kept for its later processes. The agent is started if it does not run. The mode of zot, which
decides what people are asked about, is another thing: `zotctl mode`.
"""


def add(commands: Subparsers) -> None:
    """Register `agent-options`."""
    parser = commands.add_parser(
        "agent-options", help="show or set options of the other agent that runs a session", epilog=EPILOG
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("choice", nargs="*", help="OPTION VALUE: set an option (default: list them)")
    link.add_session_flags(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    if len(args.choice) not in {0, 2}:
        raise ClientError("name an option and a value, or neither; `zotctl agent-options` lists them")
    with link.connect("zotctl") as connection:
        session = text(link.chosen(connection, args), "id")
        found: Json
        if args.choice:
            option, value = args.choice
            found = connection.call(
                "session.agent_choose", session=session, option=option, value=value, timeout_s=AGENT_S
            )
        else:
            found = connection.call("session.agent_options", session=session, timeout_s=AGENT_S)
    if args.json:
        output.print_json({"v": 1, "session": session, **found})
        return 0
    known = convert(found, AgentOptionList)
    if not known.options:
        print(one_line(f"{known.agent} has no options"))
    for option in known.options:
        _show(option)
    return 0


def _show(option: AgentOption) -> None:
    print(one_line(f"{option.id}: {option.name}"))
    for value in option.values:
        mark = "*" if value.id == option.current else " "
        words = " - ".join(filter(None, (value.name if value.name != value.id else "", value.detail)))
        print(one_line(f" {mark} {value.id}" + (f"  {words}" if words else "")))
