"""`zotctl mcp login` and `logout`: the OAuth login to a server with a URL, without a daemon."""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence

from zotctl import link, output
from zotctl.commands import Subparsers
from zotctl.ext.reload import RELOAD_S
from zotctl.mcp import config_file
from zotctl.mcp.listing import PREFIX
from zotd import paths
from zotd.client import place, web_browser
from zotd.client.blocking import Json
from zotd.client.errors import CallError, ClientError
from zotd.client.fields import children, text
from zotd.sanitize import harmless, one_line

LOGINS = "mcp-logins.json"
"""Name of the file of logins in `ZOT_HOME`, as `zotd.exthost.mcp` has it."""

EPILOG = """\
examples:
  zotctl mcp login issues
  zotctl mcp login issues --no-browser
  zotctl mcp login issues --client-id 0oa1x --port 8123

Opens a page of the server's vendor in your browser, which is then sent back to this machine. If the browser runs on another
machine, the page that it cannot show at the end has an address: paste it here. The tokens are stored in
$ZOT_HOME/mcp-logins.json with mode 0600 and renewed by themselves.

--client-id is needed only for a vendor that does not register programs by itself.
"""


def add(actions: Subparsers) -> None:
    """Register `login` and `logout`."""
    login = actions.add_parser("login", help="log in to a server with a URL, by OAuth", epilog=EPILOG)
    login.formatter_class = argparse.RawDescriptionHelpFormatter
    login.add_argument("--no-browser", action="store_true", help="print the address instead of opening a browser")
    login.add_argument(
        "--client-id", default="", metavar="ID", help="of zot, if you have registered it with the vendor"
    )
    login.add_argument("--port", type=int, default=0, metavar="N", help="port that the browser is sent back to")
    login.set_defaults(run=_login)
    logout = actions.add_parser(
        "logout", help="end a login, and revoke its tokens", epilog="example: zotctl mcp logout issues"
    )
    logout.set_defaults(run=_logout)
    for parser in (login, logout):
        parser.add_argument("name", metavar="MCP_SERVER", help="its name")
        parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _login(args: argparse.Namespace) -> int:
    name = str(args.name)
    opens = web_browser.is_here(os.environ) and not args.no_browser
    result = _run("login", name, [str(args.client_id), str(args.port)], opens=opens)
    reloaded = _reloaded(name)
    if args.json:
        output.print_json({"v": 1, "name": name, "reloaded": reloaded, **result})
        return 0
    print(one_line(f"logged in to {name} at {text(result, 'server')}"))
    print("it starts with the next session" if not reloaded else "it has been started again")
    return 0


def _logout(args: argparse.Namespace) -> int:
    result = _run("logout", str(args.name), [], opens=False)
    if args.json:
        output.print_json({"v": 1, "name": args.name, **result})
        return 0
    print(one_line(f"logged out of {args.name}"))
    if note := text(result, "note"):
        sys.stderr.write(one_line(note) + "\n")
    return 0


def _run(action: str, name: str, options: Sequence[str], *, opens: bool) -> Json:
    """Run the bridge's program, because the package that speaks MCP takes a second to import; return its result.

    Raises:
        ClientError: it failed.
    """
    file, _ = config_file.found(name)
    logins = os.path.join(paths.zot_home(os.environ), LOGINS)
    os.makedirs(os.path.dirname(logins), mode=paths.PRIVATE, exist_ok=True)
    command = [sys.executable, "-E", "-P", "-m", "zotd.bridges.mcp.login", action, file.path, name, logins, *options]
    result: Json = {}
    stdin = None if sys.stdin.isatty() else subprocess.DEVNULL
    with subprocess.Popen(command, stdin=stdin, stdout=subprocess.PIPE) as process:  # noqa: S603
        try:
            assert process.stdout is not None
            for line in process.stdout:
                result = json.loads(line)
                _show(text(result, "url"), opens=opens)
        except BaseException:
            process.terminate()  # Ctrl-C reaches it as well
            raise
    if result.get("ok") is not True:
        raise ClientError(text(result, "error") or f"the {action} ended with code {process.returncode}")
    return result


def _show(url: str, *, opens: bool) -> None:
    """Say what to do, if there is a page to open."""
    if not url:
        return
    sys.stderr.write(f"log in on this page: {one_line(url)}\n")
    if opens:
        web_browser.open_page(url, os.environ)
    if sys.stdin.isatty():
        sys.stderr.write("if the browser runs on another machine, paste the address that it shows at the end\n")
    sys.stderr.write("waiting for you to log in there; Ctrl-C cancels\n")


def _reloaded(name: str) -> bool:
    """Start the server again if a running daemon has it in this directory; it may have been refused before."""
    where: Json = {"cwd": place.of(os.environ).real_path(".")}
    try:
        with link.connect("zotctl", start=False) as connection:
            listed = children(connection.call("ext.list", where), "extensions")
            if not any(text(one, "name") == PREFIX + name for one in listed):
                return False
            connection.call("ext.reload", where, name=PREFIX + name, timeout_s=RELOAD_S)
    except CallError as error:
        sys.stderr.write(f"zotctl: {harmless(str(error))}\n")
        return False
    except ClientError:
        return False
    return True
