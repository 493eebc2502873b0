"""`zotctl mcp add` and `remove`: changes `mcp.json` in `ZOT_HOME`, or `.mcp.json` of the current directory."""

import argparse

from zotctl import output
from zotctl.commands import Subparsers
from zotctl.mcp import config_file
from zotctl.mcp.config_file import ConfigFile
from zotd.client.errors import ClientError
from zotd.sanitize import one_line
from zotd.wire.mcp import HTTP, SSE

EXAMPLES = """\
examples:
  zotctl mcp add files -- npx -y @modelcontextprotocol/server-filesystem .
  zotctl mcp add issues https://example.org/mcp
  zotctl mcp add issues https://example.org/mcp --header 'Authorization: Bearer ${ISSUES_TOKEN}'
  zotctl mcp add old https://example.org/sse --type sse
  zotctl mcp add db --project --env 'DB_URL=${DB_URL}' -- uvx mcp-server-db

Write -- before a command. ${NAME} stands for an environment variable; in single quotes it reaches the file as it is, and the
secret stays out of it. Starts nothing: zotctl mcp test NAME does.
"""

REMOVING = """\
examples:
  zotctl mcp remove files
  zotctl mcp remove db --project
"""


def add(actions: Subparsers) -> None:
    """Register `add` and `remove`."""
    adding = actions.add_parser("add", help="add a server: its URL, or the command that starts it", epilog=EXAMPLES)
    adding.add_argument("name", metavar="NAME", help="its name: letters, digits, . _ and -")
    adding.add_argument("target", nargs="+", metavar="URL|COMMAND", help="a URL, or after -- a command with arguments")
    adding.add_argument("--env", action="append", default=[], metavar="NAME=VALUE", help="a variable; can be repeated")
    adding.add_argument(
        "--header", action="append", default=[], metavar="'NAME: VALUE'", help="a header of requests; can be repeated"
    )
    adding.add_argument("--type", choices=("stdio", HTTP[0], SSE), help="the transport, needed only for sse")
    adding.add_argument("--cwd", metavar="DIR", help="its working directory, relative to that of the session")
    adding.add_argument("--timeout", type=float, metavar="S", help="seconds that a call may take without progress")
    adding.add_argument("--force", action="store_true", help="replace a server of the same name")
    adding.set_defaults(run=_add)
    removing = actions.add_parser("remove", help="remove a server", epilog=REMOVING)
    removing.add_argument("name", metavar="MCP_SERVER", help="its name")
    removing.set_defaults(run=_remove)
    for parser in (adding, removing):
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.add_argument("--project", action="store_true", help="in .mcp.json of the current directory")
        parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _chosen(args: argparse.Namespace) -> ConfigFile:
    project, own = config_file.files()
    return project if args.project else own


def _add(args: argparse.Namespace) -> int:
    file, name = _chosen(args), str(args.name)
    file.put(name, _entry(args), replace=args.force)
    if args.json:
        output.print_json({"v": 1, "name": name, "file": file.path})
        return 0
    print(one_line(f"added {name} to {file.path}"))
    print(one_line(f"to try it, run: zotctl mcp test {name}"))
    print(f"to start it here, run: {'zotctl trust grant .' if args.project else 'zotctl ext reload'}")
    return 0


def _entry(args: argparse.Namespace) -> dict[str, object]:
    """Return the entry of the file; only fields that were given."""
    first, *rest = map(str, args.target)
    is_url = first.startswith(("http://", "https://"))
    if is_url and rest:
        raise ClientError("a URL has no arguments; to give a header, use --header 'NAME: VALUE'")
    if is_url and (args.env or args.cwd):
        raise ClientError("--env and --cwd are for servers that are started by a command")
    if not is_url and args.header:
        raise ClientError("--header is for servers with a URL; a command gets variables by --env NAME=VALUE")
    entry: dict[str, object] = {"type": args.type} if args.type else {}
    entry |= {"url": first} if is_url else {"command": first, "args": rest}
    pairs = {
        "env": _pairs(args.env, "=", "--env NAME=VALUE"),
        "headers": _pairs(args.header, ":", "--header 'NAME: VALUE'"),
    }
    entry |= {field: found for field, found in pairs.items() if found}
    if args.cwd:
        entry["cwd"] = args.cwd
    if args.timeout is not None:
        entry["timeout_s"] = args.timeout
    return entry


def _pairs(given: list[str], separator: str, usage: str) -> dict[str, str]:
    found = {}
    for one in given:
        name, sign, value = one.partition(separator)
        if not sign or not name.strip():
            raise ClientError(f'"{one[:80]}" is not of the form {usage}')
        found[name.strip()] = value.strip() if separator == ":" else value
    return found


def _remove(args: argparse.Namespace) -> int:
    file, name = _chosen(args), str(args.name)
    if not file.remove(name):
        other = next((one for one in config_file.files() if one.path != file.path and name in one.servers()), None)
        flag = " without --project" if args.project else " with --project"
        hint = f"; it is in {other.path}: run it{flag}" if other is not None else ""
        raise ClientError(f'{file.path} has no server "{name[:80]}"{hint}')
    if args.json:
        output.print_json({"v": 1, "name": name, "file": file.path})
        return 0
    print(one_line(f"removed {name} from {file.path}; to end it here, run: zotctl ext reload"))
    return 0
