"""`zotctl login`, `logout` and `auth`: API keys of model vendors, and logins by subscription.

A key is read from a prompt or a pipe, never from the command line, which other users can read in the process list.
"""

import argparse
import os
import sys
from datetime import datetime
from getpass import getpass

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client import web_browser
from zotd.client.blocking import CALL_S, Connection, Json
from zotd.client.environment import HOST
from zotd.client.errors import CallError, ClientError
from zotd.client.fields import children, strings, text
from zotd.sanitize import one_line

EPILOG = """\
examples:
  zotctl login anthropic              prompts for the key without echo
  pass show anthropic | zotctl login anthropic
  zotctl login copilot                logs in with a GitHub Copilot subscription
  zotctl login chatgpt --device       shows a code to enter on any device

With a subscription: chatgpt (ChatGPT), copilot (GitHub Copilot), kimi-code (Kimi Code). A page opens in your browser; over
ssh or without a screen, an address and a code are shown instead. zot renews the tokens by itself. Anthropic does not let
other programs use a Claude subscription, so anthropic takes an API key only.

With an API key: all others. The key is checked by listing the vendor's models, which is free. A key that the vendor rejects is not stored; a key that
cannot be checked is. Keys are stored in $ZOT_HOME/auth.json with mode 0600. A key in the environment of zot takes
precedence over a stored one.
"""

MAX_PIPED = 64 * 1024
"""Most characters read from standard input; keys have about a hundred."""

WORDS = {
    "option": "--api-key",
    "environment": "the environment",
    "login": "login",
    "auth.json": "auth.json",
    "api_key_command": "api_key_command",
    "daemon": "the environment of zotd",
}
"""Sources of a key in `auth.list`, and how they are printed."""


def add(commands: Subparsers) -> None:
    """Register `login`, `logout` and `auth`."""
    login = commands.add_parser("login", help="log in to a model vendor, or store its API key", epilog=EPILOG)
    login.formatter_class = argparse.RawDescriptionHelpFormatter
    login.set_defaults(run=_login)
    login.add_argument("--no-check", action="store_true", help="store the key without checking it")
    login.add_argument("--no-browser", action="store_true", help="print the address instead of opening a browser")
    login.add_argument("--device", action="store_true", help="show a code to enter on a page, with any device")
    logout = commands.add_parser(
        "logout", help="delete a stored API key; end a login", epilog="example: zotctl logout anthropic"
    )
    logout.set_defaults(run=_logout)
    for parser in (login, logout):
        parser.add_argument("provider", metavar="PROVIDER", help="anthropic, openai, …; see zotctl auth")
    listing = commands.add_parser(
        "auth", help="list model vendors, the source of each API key, and logins", epilog="example: zotctl auth --json"
    )
    listing.set_defaults(run=_list)
    for parser in (login, logout, listing):
        parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _login(args: argparse.Namespace) -> int:
    with link.connect("zotctl", role="admin") as connection:
        vendor = _vendor(connection, args.provider)
        if strings(vendor, "methods"):
            return _subscribe(args, connection, vendor)
        key = _asked(vendor)
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


def _subscribe(args: argparse.Namespace, connection: Connection, vendor: Json) -> int:
    """Log in by subscription: show what to do, and wait until the user has done it."""
    is_here = web_browser.is_here(os.environ) and not os.environ.get(HOST)
    methods = strings(vendor, "methods")
    method = "device" if "device" in methods and (args.device or not is_here) else methods[0]
    if args.device and method != "device":
        raise ClientError(f"{text(vendor, 'title')} has no login with a code; leave out --device")
    begun = connection.call("auth.begin", timeout_s=2 * CALL_S, provider=args.provider, method=method)
    _show(begun, opens=is_here and not args.no_browser)
    try:
        outcome = _outcome(connection, text(begun, "login"))
    except KeyboardInterrupt:
        with link.connect("zotctl", role="admin") as another:  # the answer to the last command is still on its way
            another.call("auth.cancel", login=text(begun, "login"))
        raise
    if text(outcome, "state") != "done":
        raise ClientError(f"the login to {text(begun, 'title')} failed: {text(outcome, 'sentence')}")
    found = _vendor(connection, args.provider)
    account = _account(found)
    return _tell(args, found, f"logged in to {text(found, 'title')}{f' as {account}' if account else ''}")


def _show(begun: Json, *, opens: bool) -> None:
    """Say what to do, on standard error; `opens`: open the page as well."""
    code, url = text(begun, "code"), text(begun, "url")
    full_url = text(begun, "full_url") or url
    if code:
        sys.stderr.write(one_line(f"open {url} and enter the code {code}") + "\n")
    else:
        sys.stderr.write(one_line(f"log in on this page: {url}") + "\n")
    if opens:
        web_browser.open_page(full_url, os.environ)
    sys.stderr.write("waiting for you to log in there; Ctrl-C cancels\n")


def _outcome(connection: Connection, login: str) -> Json:
    """Wait for the end of a login; the daemon ends it when its time is over."""
    while True:
        found = connection.call("auth.wait", timeout_s=2 * CALL_S, login=login)
        if text(found, "state") != "pending":
            return found


def _account(one: Json) -> str:
    login = one.get("login")
    return text(login, "account") if isinstance(login, dict) else ""


def _logout(args: argparse.Namespace) -> int:
    with link.connect("zotctl", role="admin") as connection:
        vendor = _vendor(connection, args.provider)
        found = connection.call("auth.logout", timeout_s=2 * CALL_S, provider=args.provider)
    if strings(vendor, "methods"):
        code = _tell(args, found, f"logged out of {text(found, 'title')}")
        if note := text(found, "note"):
            sys.stderr.write(one_line(note) + "\n")
        return code
    return _tell(args, found, f"auth.json no longer has a key for {text(found, 'title')}")


def _list(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection:
        found = children(connection.call("auth.list"), "providers")
    for one in found:
        one["source"] = _source(one)
    if args.json:
        output.print_json({"v": 1, "providers": found})
        return 0
    rows = [
        [text(one, "provider"), _words(one), ", ".join(strings(one, "variables")), _login_words(one)] for one in found
    ]
    output.print_table(["PROVIDER", "KEY", "VARIABLE", "LOGIN"], rows)
    return 0


def _login_words(one: Json) -> str:
    """Who is logged in and until when, or how to log in; empty if the vendor has no login."""
    if not strings(one, "methods"):
        return ""
    login, name = one.get("login"), text(one, "provider")
    if not isinstance(login, dict):
        return f"zotctl login {name} (needs {text(one, 'plan')})"
    if ended := text(login, "ended"):
        return f"has ended ({ended}); zotctl login {name}"
    ends_at = login.get("expires_at")
    until = ""
    if isinstance(ends_at, int | float):
        until = f"renewed at {datetime.fromtimestamp(ends_at).astimezone():%Y-%m-%d %H:%M}"
    return ", ".join(word for word in (text(login, "account") or "logged in", until) if word)


def _vendor(connection: Connection, name: str) -> Json:
    """Return the vendor's entry of `auth.list`; raises `ClientError` for an unknown name, before a key is typed."""
    vendors = children(connection.call("auth.list"), "providers")
    found = next((one for one in vendors if text(one, "provider") == name), None)
    if found is None:
        names = ", ".join(
            text(one, "provider") for one in vendors if strings(one, "variables") or strings(one, "methods")
        )
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
    if found["source"] not in {None, "auth.json", "login"}:
        print(one_line(f"zot still uses the key from {_words(found)}, which takes precedence"))
    return 0


def _source(one: Json) -> str | None:
    """Return the source that `zot` would use. Its own environment, unknown to the daemon, precedes `auth.json`."""
    if any(os.environ.get(name) for name in strings(one, "variables")):
        return "environment"
    return text(one, "source") or None


def _words(one: Json) -> str:
    if not strings(one, "variables") and not strings(one, "methods"):
        own_login = text(one, "own_login")
        return f"your login of {own_login}" if own_login else "not needed"
    source = one["source"]
    return WORDS.get(str(source), "none" if source is None else str(source))
