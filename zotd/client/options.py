"""The flags of `zot`, and the session that they mean; for its one-shot modes and its chats alike."""

import argparse
from collections.abc import Mapping

from zotd.client import place
from zotd.client.blocking import CALL_S, Connection, Json
from zotd.client.choosing import choose, find, newest, stored
from zotd.client.environment import TRUST
from zotd.client.errors import ClientError
from zotd.client.fields import child, text
from zotd.client.place import Place
from zotd.key_flags import add_key_flags
from zotd.wire.version import VERSION, protocols

DESCRIPTION = """\
zot talks to coding agents that live in a daemon, which it starts when none runs.

  zot                       chat in this directory
  zot "fix the tests"       the same, with a first prompt
  zot -p "what is this?"    print the answer and leave
  zot --json "…"            print every event as a line of JSON
  zot rpc                   serve one session on standard input and output
  zot acp                   serve an editor that speaks the Agent Client Protocol
"""

EXAMPLES = """\
examples:
  git diff | zot -p "review this"
  zot -c "and now the tests"
  zot -c -p                      go on with what was cut off
  zot -p --resume s_01JX… "go on" --model claude-sonnet-4-5
  zot -p --no-session --tools read,grep "where is main?"
  zot --mode ask "tidy up"       asks before it writes or runs anything
  zot -p --mode ask --wait "…"   somebody else decides: zotctl approvals

Ctrl-C ends the run; a closed terminal does not: the session goes on, `zot -c` comes back to it.
"""


MODES = ("yolo", "ask", "read-only")
"""Approval modes (`docs/durability.md`)."""


def parser() -> argparse.ArgumentParser:
    """Of everything but the subcommands, which `zotd.cli` sees to."""
    made = argparse.ArgumentParser(
        prog="zot",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("prompt", nargs="*", help="what to ask; piped input comes before it")
    made.add_argument("-v", "--version", action="version", version=f"zot {VERSION}")
    mode = made.add_mutually_exclusive_group()
    mode.add_argument("-p", "--print", action="store_true", help="print the answer and leave")
    mode.add_argument("--json", action="store_true", help="print events as lines of JSON")
    mode.add_argument("--list-models", action="store_true", help="list models, and which have no key")
    made.add_argument("--plain", action="store_true", help="a chat in plain lines, as screen readers like it")
    made.add_argument("--no-color", action="store_true", help="also off with NO_COLOR, and outside a terminal")
    _add_session_flags(made)
    _add_settings_flags(made)
    add_place_flags(made)
    return made


def add_place_flags(made: argparse.ArgumentParser) -> None:
    """For the help only: `environment.without_flags` has taken those that have a value."""
    group = made.add_argument_group("another machine")
    group.add_argument("--host", metavar="URL", help="its daemon: wss://host:port (ZOT_HOST)")
    group.add_argument("--token-file", metavar="FILE", help="what it lets you in with (ZOT_TOKEN_FILE)")
    group.add_argument("--ca-file", metavar="FILE", help="who vouches for it, if not the system (ZOT_CA_FILE)")


def _add_session_flags(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("session").add_mutually_exclusive_group()
    group.add_argument(
        "-c",
        "--continue",
        action="store_true",
        dest="go_on",
        help="the newest session of this directory; it goes on where it stopped, and then with the prompt",
    )
    group.add_argument("-n", "--new", action="store_true", help="a new session, also where there is one")
    group.add_argument("-r", "--resume", nargs="?", const="", metavar="ID", help="that session; without ID: choose one")
    group.add_argument("--session", metavar="ID|NAME", help="that session")
    group.add_argument("--no-session", action="store_true", help="keep nothing; the session ends with this program")


def _add_settings_flags(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("settings")
    group.add_argument("--provider", metavar="PROVIDER", help="whose model: anthropic, openai, …")
    group.add_argument("--model")
    add_key_flags(group, has_stdin=True)
    group.add_argument("--base-url", metavar="URL")
    group.add_argument("--reasoning", metavar="LEVEL", help="off, low, medium, high")
    group.add_argument(
        "--mode",
        choices=MODES,
        metavar="MODE",
        help="yolo runs every call, ask asks before each that may change something, read-only denies those",
    )
    group.add_argument("--wait", action="store_true", help="with -p: leave a call that nobody can decide about waiting")
    group.add_argument("--cwd", metavar="DIR", help="where the agent works (here)")
    group.add_argument("--tools", metavar="A,B", help="only these tools")
    group.add_argument("--no-tools", action="store_true")
    group.add_argument("--max-steps", type=positive, metavar="N")
    group.add_argument("--budget-usd", type=_amount, metavar="USD", help="what the session's requests may cost in all")
    group.add_argument("--budget-tokens", type=positive, metavar="N", help="the same in tokens")
    group.add_argument("--system-prompt", metavar="TEXT")
    group.add_argument("--append-system-prompt", action="append", metavar="TEXT", help="may be repeated")
    group.add_argument("-e", "--ext", action="append", metavar="PATH", help="an extension; may be repeated")
    group.add_argument("--no-ext", "--no-extensions", action="store_true", help="start no extension")
    group.add_argument("-y", "--yolo", action="store_const", const="yolo", dest="mode", help="the same as --mode yolo")
    group.add_argument("--no-yolo", action="store_const", const="ask", dest="mode", help="the same as --mode ask")
    group.add_argument(
        "--trust", action="store_true", help="run the directory's own code this time, as ZOT_TRUST=1 does"
    )


def positive(word: str) -> int:
    """A count on a command line, from 1; raises what argparse tells as a usage error."""
    number = int(word) if word.removeprefix("-").isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return number


def _amount(word: str) -> float:
    amount = float(word)
    if not 0 < amount < float("inf"):
        raise argparse.ArgumentTypeError("must be above 0")
    return amount


def settings(args: argparse.Namespace, where: Place) -> Json:
    """What `session.create` and `session.configure` share; only what was asked for. Raises `ClientError`."""
    tools = None if args.tools is None else [name for name in str(args.tools).split(",") if name]
    wanted: Json = {
        "provider": args.provider,
        "model": args.model,
        "reasoning": args.reasoning,
        "mode": args.mode,
        "base_url": args.base_url,
        "system_prompt": args.system_prompt,
        "append_system_prompt": args.append_system_prompt,
        "tools": tools,
        "no_tools": args.no_tools or None,
        "max_steps": args.max_steps,
        "budget_usd": args.budget_usd,
        "budget_tokens": args.budget_tokens,
        "extensions": [where.real_path(path) for path in args.ext] if args.ext else None,
        "no_ext": args.no_ext or None,
        "secrets": {"api_key": args.api_key} if args.api_key else None,
    }
    return {name: value for name, value in wanted.items() if value is not None}


def hello(
    connection: Connection,
    name: str,
    *,
    can_approve: bool = False,
    role: str | None = None,
    any_protocol: bool = False,
    timeout_s: float = CALL_S,
) -> Json:
    """Say who we are; what the daemon says of itself.

    `any_protocol`: also to a daemon with which we share none, for the commands that are the same in all of them
    (`docs/protocol.md`); else it refuses, and says who is older. Raises what `Connection.call` raises.
    """
    client = {"name": name, "kind": name, "version": VERSION}
    spoken = None if any_protocol else list(protocols())
    greeting: Json = {"client": client, "protocol": spoken, "role": role, "can_approve": can_approve}
    return connection.call("hello", greeting, timeout_s=timeout_s)


def environment(args: argparse.Namespace, env: Mapping[str, str]) -> dict[str, str] | None:
    """The part of `env` that a session's tools run in; with `--trust` it says so. None: what the daemon runs in.

    Raises:
        ClientError: `--trust`, which is a part of the environment, and another machine gets none.
    """
    where = place.of(env)
    if not args.trust:
        return where.variables
    if where.variables is None:
        raise ClientError(f"--trust is for this machine only; on {where.name}: zotctl trust grant DIR")
    return where.variables | {TRUST: "1"}


def open_session(
    connection: Connection,
    args: argparse.Namespace,
    env: Mapping[str, str],
    *,
    prefers_newest: bool = False,
    keyless: bool = False,
) -> Json:
    """The session that the flags mean, made when they mean a new one; attached. As `SessionInfo`. Raises `ClientError`.

    `prefers_newest`: flags that name none mean the newest of the directory, if it has one, and not a new one.
    `keyless`: a new one is made also when there is no key for its model; who asks for that can log in.
    """
    where = place.of(env)
    cwd = where.directory(args.cwd)
    found = _existing(connection, args, cwd)
    if found is None and prefers_newest and not (args.new or args.no_session):
        found = next(stored(connection, cwd), None)
    wanted = settings(args, where)
    variables = environment(args, env)
    if found is None:
        if cwd is None:
            raise ClientError(f"a new session on {where.name} needs a directory of that machine: --cwd /path")
        wanted["ephemeral" if args.no_session else "discard_unused"] = True
        if keyless:
            wanted["keyless"] = True
        created = connection.call("session.create", wanted, cwd=cwd, env=variables)
        session = child(created, "session")
        after = {"epoch": created.get("epoch"), "seq": created.get("seq")}
        connection.call("attach", session=text(session, "id"), after=after)
        return session
    if wanted:
        connection.call("session.configure", wanted, session=text(found, "id"))
    attached = connection.call("attach", session=text(found, "id"), limit=1, env=variables)
    return found | child(attached, "session")


def _existing(connection: Connection, args: argparse.Namespace, cwd: str | None) -> Json | None:
    if args.go_on:
        return newest(connection, cwd)
    if args.resume == "":
        return choose(connection, cwd)
    word = args.resume or args.session
    return find(connection, word) if word else None
