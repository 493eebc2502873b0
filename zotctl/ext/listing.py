"""`zotctl ext list` and `doctor`: states and problems of extensions."""

import argparse

from zotctl import link, output
from zotctl.commands import Subparsers
from zotctl.ext import scope
from zotd.client import colour
from zotd.client.blocking import Json
from zotd.client.columns import clipped
from zotd.client.fields import children, strings, text
from zotd.sanitize import one_line

NAMES_COLUMNS = 40
"""Most columns of a list of tools or commands in the table."""


def add(actions: Subparsers) -> None:
    """Register `list` and `doctor`."""
    parser = actions.add_parser(
        "list", help="list extensions and their states", epilog="example: zotctl ext list --all --json | jq .extensions"
    )
    scope.add_flags(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_list)
    parser = actions.add_parser(
        "doctor",
        help="find problems of extensions, and list disabled ones; exit code 1 if there is a problem",
        epilog="example: zotctl ext doctor",
    )
    scope.add_flags(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_doctor)


def _list(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection:
        found = children(connection.call("ext.list", scope.chosen(connection, args)), "extensions")
    if args.json:
        output.print_json({"v": 1, "extensions": found})
        return 0
    where = [("SESSION", "session")] if any(text(one, "session") for one in found) else []
    where += [("DIRECTORY", "cwd")] if args.all else []
    head = ["NAME", "STATE", "SOURCE", "TOOLS", "COMMANDS", *(title for title, _ in where), "REASON"]
    output.print_table(head, [_row(one, [field for _, field in where]) for one in found])
    return 0


def _row(one: Json, where: list[str]) -> list[str]:
    names = _short(strings(one, "tools")), _short([f"/{name}" for name in strings(one, "commands")])
    places = [text(one, field) for field in where]
    return [*(text(one, name) for name in ("name", "state", "source")), *names, *places, _reason(one)]


def _reason(one: Json) -> str:
    silent = ["does not respond"] if one.get("responding") is False else []
    return "; ".join([text(one, "reason"), *silent] if text(one, "reason") else silent)


def _short(names: list[str]) -> str:
    return clipped(one_line(", ".join(names)), NAMES_COLUMNS)


def _doctor(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection:
        found = children(connection.call("ext.doctor", scope.chosen(connection, args)), "findings")
    wrong = [one for one in found if text(one, "kind") != "disabled"]
    if args.json:
        output.print_json({"v": 1, "findings": found})
        return 1 if wrong else 0
    for finding in found:
        about = text(finding, "extension")
        words = text(finding, "text")
        print(one_line(f"{about}: {words}" if about else words))
    if not wrong:
        print(output.painted("no problems found", colour.GREEN))
    return 1 if wrong else 0
