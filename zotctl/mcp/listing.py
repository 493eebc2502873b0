"""`zotctl mcp list`: the servers of both files, and their states if a daemon runs."""

import argparse
import os
import shlex
import sys

from zotctl import link, output
from zotctl.commands import Subparsers
from zotctl.mcp import config_file
from zotctl.mcp.config_file import ConfigFile
from zotd.client import place
from zotd.client.blocking import Json
from zotd.client.columns import clipped
from zotd.client.errors import ClientError
from zotd.client.fields import children, strings, text
from zotd.sanitize import harmless, one_line
from zotd.wire.mcp import McpServer, ServerError

PREFIX = "mcp-"
"""Begins the name of a server's extension."""

TARGET_COLUMNS = 50
"""Most columns of a command or URL in the table."""


def add(actions: Subparsers) -> None:
    """Register `list`."""
    parser = actions.add_parser(
        "list",
        help="list the servers of this directory, and their states if a daemon runs",
        epilog="example: zotctl mcp list --json | jq .servers",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    states = _states()
    servers: dict[str, Json] = {}
    problems: list[str] = []
    for file in config_file.files():
        try:
            entries = file.servers()
        except ClientError as error:
            problems.append(str(error))
            continue
        for name, entry in entries.items():
            servers.setdefault(name, _described(name, entry, file, states))
    if args.json:
        output.print_json({"v": 1, "servers": list(servers.values()), "problems": problems})
        return 1 if problems else 0
    rows = [_row(one) for one in servers.values()]
    output.print_table(["NAME", "STATE", "TOOLS", "FROM", "SERVER", "REASON"], rows)
    for problem in problems:
        sys.stderr.write(f"zotctl: {harmless(problem)}\n")
    return 1 if problems else 0


def _states() -> dict[str, Json]:
    """Return what a running daemon knows of the extensions of this directory, by name; empty if there is none."""
    try:
        with link.connect("zotctl", start=False) as connection:
            listed = connection.call("ext.list", cwd=place.of(os.environ).real_path("."))
    except ClientError:
        return {}
    return {text(one, "name"): one for one in children(listed, "extensions")}


def _described(name: str, entry: McpServer | ServerError, file: ConfigFile, states: dict[str, Json]) -> Json:
    """Return the entry for the list. Neither variables nor headers, which may be secrets."""
    described: Json = {"name": name, "file": file.path, "project": file.is_of_project}
    if isinstance(entry, ServerError):
        return {**described, "state": "invalid", "reason": str(entry)}
    extension = states.get(PREFIX + name, {})
    return {
        **described,
        "type": entry.type or ("stdio" if entry.command else "http"),
        **({"command": entry.command, "args": list(entry.args)} if entry.command else {"url": entry.url}),
        "state": text(extension, "state") or ("disabled" if entry.disabled else "unknown"),
        "reason": text(extension, "reason"),
        "tools": strings(extension, "tools"),
        "commands": strings(extension, "commands"),
    }


def _row(one: Json) -> list[str]:
    target = text(one, "url") or shlex.join([text(one, "command"), *strings(one, "args")] if "command" in one else [])
    tools = str(len(strings(one, "tools"))) if strings(one, "tools") else ""
    where = "project" if one["project"] else "user"
    return [
        text(one, "name"),
        text(one, "state"),
        tools,
        where,
        clipped(one_line(target), TARGET_COLUMNS),
        text(one, "reason"),
    ]
