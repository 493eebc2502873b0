"""`zotctl login`, `logout` and `auth`: API keys of model vendors.

A key is read from a prompt or a pipe, never from the command line, which other users can read in the process list.
"""

import argparse
import os
import sys
from getpass import getpass

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client.blocking import Connection, Json
from zotd.client.errors import CallError, ClientError
from zotd.client.fields import children, strings, text
from zotd.sanitize import one_line

EPILOG = """\
examples:
  zotctl login anthropic              prompts for the key without echo
  pass show anthropic | zotctl login anthropic

Checks the key by listing the vendor's models, which is free. A key that the vendor rejects is not stored; a key that
cannot be checked is. Keys are stored in $ZOT_HOME/auth.json with mode 0600. A key in the environment of zot takes
precedence over a stored one.
"""

MAX_PIPED = 64 * 1024
"""Most characters read from standard input; keys have about a hundred."""

WORDS = {
    "option": "--api-key",
    "environment": "the environment",
    "auth.json": "auth.json",
    "api_key_command": "api_key_command",
    "daemon": "the environment of zotd",
}
"""Sources of a key in `auth.list`, and how they are printed."""


def add(commands: Subparsers) -> None:
    """Register `login`, `logout` and `auth`."""
    login = commands.add_parser("login", help="store the API key of a model vendor", epilog=EPILOG)
    login.formatter_class = argparse.RawDescriptionHelpFormatter
    login.set_defaults(run=_login)
    login.add_argument("--no-check", action="store_true", help="store the key without checking it")
    logout = commands.add_parser("logout", help="delete a stored API key", epilog="example: zotctl logout anthropic")
    logout.set_defaults(run=_logout)
    for parser in (login, logout):
        parser.add_argument("provider", metavar="PROVIDER", help="anthropic, openai, …; see zotctl auth")
    listing = commands.add_parser(
        "auth", help="list model vendors and the source of each API key", epilog="example: zotctl auth --json"
    )
    listing.set_defaults(run=_list)
    for parser in (login, logout, listing):
        parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _login(args: argparse.Namespace) -> int:
    with link.connect("zotctl", role="admin") as connection:
        key = _asked(_vendor(connection, args.provider))
        if not args.no_check:
            _check(connection, args.provider, key)
        found = connection.call("auth.login", provider=args.provider, api_key=key)
    return _tell(args, found, f"stored the key for {text(found, 'title')} in auth.json")


def _check(connection: Connection, provider: str, key: str) -> None:
    """Raise `ClientError` if the vendor rejects the key; only warn if the vendor cannot be reached."""
    try:
        found = connection.call("auth.check", provider=provider, api_key=key)
    except CallError as error:
        if (
            error.code != "bad_request"
        ):  # not checkable, or an older daemon without `auth.check`: `auth.login` reports what is wrong
            raise
        return
    outcome, sentence = text(found, "outcome"), text(found, "sentence")
    if outcome == "refused":
        raise ClientError(f"{sentence}; the key was not stored. Check that you copied all of it, or use --no-check")
    if outcome == "unreachable":
        sys.stderr.write(one_line(f"could not check the key: {sentence}") + "\n")


def _logout(args: argparse.Namespace) -> int:
    with link.connect("zotctl", role="admin") as connection:
        found = connection.call("auth.logout", provider=args.provider)
    return _tell(args, found, f"auth.json no longer has a key for {text(found, 'title')}")


def _list(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection:
        found = children(connection.call("auth.list"), "providers")
    for one in found:
        one["source"] = _source(one)
    if args.json:
        output.print_json({"v": 1, "providers": found})
        return 0
    rows = [[text(one, "provider"), _words(one), ", ".join(strings(one, "variables"))] for one in found]
    output.print_table(["PROVIDER", "KEY", "VARIABLE"], rows)
    return 0


def _vendor(connection: Connection, name: str) -> Json:
    """Return the vendor's entry of `auth.list`; raises `ClientError` for an unknown name, before a key is typed."""
    vendors = children(connection.call("auth.list"), "providers")
    found = next((one for one in vendors if text(one, "provider") == name), None)
    if found is None:
        names = ", ".join(text(one, "provider") for one in vendors if strings(one, "variables"))
        raise ClientError(f'unknown provider "{name}"; known providers: {names}')
    return found


def _asked(vendor: Json) -> str:
    """Read the key from a prompt without echo, or from a pipe."""
    if sys.stdin.isatty():
        return getpass(f"API key for {one_line(text(vendor, 'title'))}: ")
    return sys.stdin.read(MAX_PIPED)


def _tell(args: argparse.Namespace, found: Json, sentence: str) -> int:
    found["source"] = _source(found)
    if args.json:
        output.print_json({"v": 1, **found})
        return 0
    print(one_line(sentence))
    if found["source"] not in {None, "auth.json"}:
        print(one_line(f"zot still uses the key from {_words(found)}, which takes precedence"))
    return 0


def _source(one: Json) -> str | None:
    """Return the source that `zot` would use. Its own environment, unknown to the daemon, precedes `auth.json`."""
    if any(os.environ.get(name) for name in strings(one, "variables")):
        return "environment"
    return text(one, "source") or None


def _words(one: Json) -> str:
    if not strings(one, "variables"):
        return "not needed"
    source = one["source"]
    return WORDS.get(str(source), "none" if source is None else str(source))
