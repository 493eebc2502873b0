"""`zotctl mcp test`: starts a server or connects to it, without a daemon, and lists what it offers."""

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib import import_module
from typing import IO

from msgspec import UNSET

from zotctl import output
from zotctl.commands import Subparsers
from zotctl.mcp import config_file
from zotctl.mcp.login import LOGINS
from zotd import paths
from zotd.client.blocking import Json
from zotd.client.errors import ClientError
from zotd.client.fields import children, strings, text
from zotd.sanitize import harmless, one_line

TEST_S = 240.0
"""Longest test: 120 s for the first answer, 30 s for each list, and the end of the server."""

LOG_LINES = 20
"""Last lines of its stderr that are shown if the test fails."""

LOG_BYTES = 64 * 1024
"""Most of them that is read."""

EPILOG = """\
examples:
  zotctl mcp test files
  zotctl mcp test files --json | jq .tools

Runs the command of the server, or connects to its URL, with the environment of this shell. The first start of a program by npx
or uvx downloads it. Calls no tool. Exit code 1 if something went wrong.
"""


def add(actions: Subparsers) -> None:
    """Register `test`."""
    parser = actions.add_parser("test", help="connect to a server, and list what it offers", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("name", metavar="MCP_SERVER", help="its name")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    name = str(args.name)
    file, entry = config_file.found(name)
    if file.is_of_project:  # which may have come with a repository
        target = entry.url or shlex.join([entry.command, *entry.args])
        sys.stderr.write(f"{one_line(f'testing {name} of {file.path}: {target}')}\n")
    with output.progress(f"waiting for {one_line(name)}"), tempfile.TemporaryFile() as log:
        result = _tried(file.path, name, log) if entry.sandbox is UNSET else _tried_in_jail(file.path, name, log)
        words = _end(log)
    if args.json:
        output.print_json({"v": 1, "name": name, "file": file.path, **result, "stderr": words})
    else:
        _print(name, result, words)
    return 0 if result.get("ok") is True and not strings(result, "problems") else 1


def _tried_in_jail(path: str, name: str, log: IO[bytes]) -> Json:
    """The same, with the server confined as its entry asks."""
    # Imported here, because the jails and the proxy load slowly.
    tried: Json = import_module("zotctl.mcp.jailed_trial").run(path, name, lambda words: _tried(path, name, log, words))
    return tried


def _tried(path: str, name: str, log: IO[bytes], words: Sequence[str] = ()) -> Json:
    """Run the bridge to the server in a process of its own, because the package that speaks MCP takes a second to import."""
    logins = os.path.join(paths.zot_home(os.environ), LOGINS)
    command = [sys.executable, "-E", "-P", "-m", "zotd.bridges.mcp.trial", path, name, logins, *words]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log) as process:  # noqa: S603
        try:
            out, _ = process.communicate(timeout=TEST_S)
        except subprocess.TimeoutExpired as error:
            process.kill()
            raise ClientError(f"{name} was tested for {TEST_S:.0f} s without a result") from error
        except BaseException:
            process.terminate()  # Ctrl-C reaches it as well; it ends its server
            raise
    try:
        result = json.loads(out)
    except ValueError as error:
        raise ClientError(f"the test of {name} failed with code {process.returncode}: {_end(log)[-500:]}") from error
    assert isinstance(result, dict)
    return result


def _print(name: str, result: Json, log: str) -> None:
    if result.get("ok") is not True:
        sys.stderr.write(f"zotctl: {harmless(text(result, 'error'))}\n")
        if log:
            sys.stderr.write(f"last lines of its stderr:\n{harmless(log)}\n")
        return
    server, seconds = text(result, "server"), result.get("seconds")
    print(one_line(f"{name}: {server}, MCP {text(result, 'protocol')}, ready after {seconds} s"))
    rows = [
        [kind, text(one, "name"), one_line(text(one, "about"))]
        for kind, field in (("tool", "tools"), ("prompt", "prompts"), ("resource", "resources"))
        for one in children(result, field)
    ]
    output.print_table(["KIND", "NAME", "ABOUT"], rows)
    for problem in strings(result, "problems"):
        sys.stderr.write(f"zotctl: {harmless(problem)}\n")


def _end(log: IO[bytes]) -> str:
    log.seek(max(0, log.seek(0, 2) - LOG_BYTES))
    return "\n".join(log.read().decode(errors="replace").splitlines()[-LOG_LINES:])
