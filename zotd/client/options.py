"""Argument parser of `zot` and the session that its flags select; shared by the one-shot modes and the chats."""

import argparse
from collections.abc import Mapping
from functools import cache

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
Work with coding agents that run in a background daemon, which zot starts if necessary.

  zot                       chat in the current directory
  zot "fix the tests"       chat, starting with this prompt
  zot -p "what is this?"    print the reply and exit
  zot --json "…"            print every event as a JSON line
  zot rpc                   run one session over standard input and output
  zot acp                   serve an editor over the Agent Client Protocol (ACP)
  zot ext                   manage extensions, as `zotctl ext` does
  zot box: or box:tests     chat on the machine box, over ssh; in its session tests
"""

EXAMPLES = """\
examples:
  git diff | zot -p "review this"
  zot -c "and now the tests"
  git diff | zot -p "/review"    run a slash command; //text is a prompt
  zot -c -p                      continue the interrupted run
  zot -p --resume s_01JX… "go on" --model claude-sonnet-4-5
  zot --agent claude "tidy up"   have Claude Code do it, under zot's journal and approvals
  zot -p --no-session --tools read,grep "where is main?"
  zot --mode ask "tidy up"       ask before writing files or running commands
  zot -p --mode ask --wait "…"   wait for another client to approve (zotctl approve)
  zot -p --fleet "tidy up"       have any daemon of the database run it
  zot "fix the parser" -w        work in a git worktree of its own

Ctrl-C stops the run. Closing the terminal does not: the run continues in the daemon; `zot -c` returns to it.
"""


MODES = ("yolo", "workspace", "ask", "read-only")
"""Approval modes (`docs/durability.md`)."""


@cache
def parser() -> argparse.ArgumentParser:
    """Return the parser of everything but the subcommands, which `zotd.cli` dispatches."""
    made = argparse.ArgumentParser(
        prog="zot",
        description=DESCRIPTION,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument(
        "prompt",
        nargs="*",
        help="the prompt, or a slash command; piped input comes before a prompt and after a command",
    )
    made.add_argument("-v", "--version", action="version", version=f"zot {VERSION}")
    mode = made.add_mutually_exclusive_group()
    mode.add_argument("-p", "--print", action="store_true", help="print the reply and exit")
    mode.add_argument("--json", action="store_true", help="print events as JSON lines")
    mode.add_argument("--list-models", action="store_true", help="list models, and which ones lack an API key")
    made.add_argument("--all", action="store_true", help="with --list-models: also list superseded models")
    made.add_argument("--plain", action="store_true", help="chat in plain lines of text, for screen readers")
    made.add_argument("--no-color", action="store_true", help="disable colours, as NO_COLOR does")
    _add_session_flags(made)
    _add_settings_flags(made)
    _add_fleet_flags(made)
    add_place_flags(made)
    return made


def _add_fleet_flags(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("several daemons with one database")
    group.add_argument(
        "--fleet", action="store_true", help="with -p or --json: have any of them run the prompt (docs/batches.md)"
    )
    group.add_argument(
        "--label",
        action="append",
        dest="labels",
        metavar="LABEL",
        help="with --fleet: only a daemon that has this label runs it; repeatable",
    )


def add_place_flags(made: argparse.ArgumentParser) -> None:
    """Add the flags of remote daemons for the help page; `environment.without_flags` has removed them before parsing."""
    group = made.add_argument_group("remote daemon")
    group.add_argument(
        "--host", metavar="HOST", help="machine of the daemon: a host for ssh, or wss://host:port (ZOT_HOST)"
    )
    group.add_argument("--token-file", metavar="FILE", help="file with the access token (ZOT_TOKEN_FILE)")
    group.add_argument(
        "--ca-file", metavar="FILE", help="CA certificates to trust instead of the system's (ZOT_CA_FILE)"
    )


def _add_session_flags(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("session").add_mutually_exclusive_group()
    group.add_argument(
        "-c",
        "--continue",
        action="store_true",
        dest="go_on",
        help="use the newest session of this directory; continue an interrupted run before sending the prompt",
    )
    group.add_argument("-n", "--new", action="store_true", help="start a new session even if this directory has one")
    group.add_argument(
        "-r", "--resume", nargs="?", const="", metavar="ID", help="use session ID; without ID, choose one"
    )
    group.add_argument("--session", metavar="ID|NAME", help="use this session")
    group.add_argument("--no-session", action="store_true", help="store nothing; the session ends with this command")
    made.add_argument(
        "-w",
        "--worktree",
        nargs="?",
        const="",
        metavar="WORKTREE",
        help="start the session in this git worktree of the repository, which is created if necessary, on a branch of its"
        " own; without a name, one is made up",
    )


def _add_settings_flags(made: argparse.ArgumentParser) -> None:
    group = made.add_argument_group("settings")
    group.add_argument("--provider", metavar="PROVIDER", help="model vendor: anthropic, openai, …")
    group.add_argument("--model", help="model name; see --list-models")
    group.add_argument(
        "--agent", metavar="NAME", help="have another agent run the new session, such as claude; see zotctl adapters"
    )
    add_key_flags(group, has_stdin=True)
    group.add_argument("--base-url", metavar="URL", help="base URL for model requests")
    group.add_argument(
        "--reasoning", metavar="LEVEL", help="reasoning effort: off, minimum, low, medium, high, xhigh or max"
    )
    group.add_argument(
        "--mode",
        choices=MODES,
        metavar="MODE",
        help="approval mode. yolo: run every call; workspace: run calls in a jail, ask before what leads out of it;"
        " ask: ask before calls that may change something; read-only: deny them",
    )
    group.add_argument("--wait", action="store_true", help="with -p: wait for an approval instead of denying the call")
    group.add_argument("--cwd", metavar="DIR", help="working directory; default: the current one")
    group.add_argument("--tools", metavar="A,B", help="enable only these tools")
    group.add_argument("--no-tools", action="store_true", help="disable all tools")
    group.add_argument("--max-steps", type=positive, metavar="N", help="maximum number of model calls per run")
    group.add_argument("--budget-usd", type=_amount, metavar="USD", help="maximum cost of the session's model requests")
    group.add_argument("--budget-tokens", type=positive, metavar="N", help="maximum number of tokens of the session")
    group.add_argument(
        "--fallback",
        action="append",
        metavar="A,B",
        help="models to ask when the session's own fails: provider/model; repeatable; none: no model",
    )
    group.add_argument("--system-prompt", metavar="TEXT", help="replace the system prompt")
    group.add_argument(
        "--append-system-prompt", action="append", metavar="TEXT", help="append to the system prompt; repeatable"
    )
    group.add_argument("-e", "--ext", action="append", metavar="PATH", help="load this extension; repeatable")
    group.add_argument("--no-ext", "--no-extensions", action="store_true", help="load no extensions except those of -e")
    group.add_argument("-y", "--yolo", action="store_const", const="yolo", dest="mode", help="same as --mode yolo")
    group.add_argument("--no-yolo", action="store_const", const="ask", dest="mode", help="same as --mode ask")
    group.add_argument(
        "--trust", action="store_true", help="run the project's own extensions and tools, as ZOT_TRUST=1 does"
    )


def positive(word: str) -> int:
    """Parse an integer of at least 1; for argparse, which reports the error."""
    number = int(word) if word.removeprefix("-").isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _amount(word: str) -> float:
    amount = float(word)
    if not 0 < amount < float("inf"):
        raise argparse.ArgumentTypeError("must be greater than 0")
    return amount


def settings(args: argparse.Namespace, where: Place) -> Json:
    """Return the given settings as parameters of `session.create` and `session.configure`. Raises `ClientError`."""
    tools = None if args.tools is None else [name for name in str(args.tools).split(",") if name]
    wanted: Json = {
        "provider": args.provider,
        "model": args.model,
        "agent": args.agent,
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
        "fallback": None if args.fallback is None else fallback(",".join(args.fallback)),
        "extensions": [where.real_path(path) for path in args.ext] if args.ext else None,
        "no_ext": args.no_ext or None,
        "secrets": {"api_key": args.api_key} if args.api_key else None,
    }
    return {name: value for name, value in wanted.items() if value is not None}


def fallback(words: str) -> list[str]:
    """Return the models that a list separated by commas names; none for `none`."""
    names = [name.strip() for name in words.split(",")]
    return [] if names == ["none"] else [name for name in names if name]


def hello(
    connection: Connection,
    name: str,
    *,
    can_approve: bool = False,
    role: str | None = None,
    any_protocol: bool = False,
    timeout_s: float = CALL_S,
) -> Json:
    """Introduce this client; returns the daemon's answer.

    `any_protocol` also accepts a daemon that shares no protocol version with this client, for the commands that are the
    same in all versions (docs/protocol.md). Raises what `Connection.call` raises.
    """
    client = {"name": name, "kind": name, "version": VERSION}
    spoken = None if any_protocol else list(protocols())
    greeting: Json = {"client": client, "protocol": spoken, "role": role, "can_approve": can_approve}
    return connection.call("hello", greeting, timeout_s=timeout_s)


def environment(args: argparse.Namespace, env: Mapping[str, str]) -> dict[str, str] | None:
    """Return the environment for the session's tools, or None for the daemon's own.

    Raises:
        ClientError: `--trust` with a remote daemon, which is not sent any environment.
    """
    where = place.of(env)
    if not args.trust:
        return where.variables
    if where.variables is None:
        raise ClientError(f"--trust works only on this machine; for {where.name} run: zotctl trust grant DIR")
    return where.variables | {TRUST: "1"}


def open_session(
    connection: Connection,
    args: argparse.Namespace,
    env: Mapping[str, str],
    *,
    prefers_newest: bool = False,
    keyless: bool = False,
) -> Json:
    """Find or create the session that the flags select, and attach to it. Raises `ClientError`.

    Args:
        connection: to the daemon.
        args: of `parser`.
        env: this program's environment.
        prefers_newest: without flags that select a session, use the directory's newest one if it has any.
        keyless: create a session even if there is no API key for its model; the user can log in later.

    Returns:
        A `SessionInfo` as a dict.
    """
    if args.worktree is not None:  # `zotd.cli` has removed a flag that it knows
        raise ClientError("--worktree needs the command `zot`, and -w must not be joined with other flags")
    where = place.of(env)
    cwd = where.directory(args.cwd)
    found = _existing(connection, args, cwd)
    if found is not None and args.agent:
        raise ClientError(f"--agent {args.agent} needs a session of its own; leave out -c, --resume and --session")
    if found is None and prefers_newest and not (args.new or args.no_session or args.agent):
        found = next(stored(connection, cwd), None)
    wanted = settings(args, where)
    variables = environment(args, env)
    if found is None:
        if cwd is None:
            raise ClientError(f"a new session on {where.name} needs a directory of that machine; add --cwd /path")
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
