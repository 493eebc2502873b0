"""`zotctl approvals`, `approve`, `deny`, `grants` and `mode`: pending tool calls, and which calls need approval."""

import argparse
import sys

from zotctl import editor, link, output
from zotctl.commands import Subparsers
from zotd.client import asking, options
from zotd.client.blocking import Connection, Json
from zotd.client.call_text import CallText
from zotd.client.errors import ClientError
from zotd.client.fields import child, children, maybe_text, text
from zotd.sanitize import harmless, one_line

EPILOG = """\
examples:
  zotctl approvals
  zotctl approve a_01JX…              this call only
  zotctl approve a_01JX… --session    also similar calls in its session
  zotctl approve a_01JX… --always     also similar calls everywhere: shows a rule and adds it to config.toml
  zotctl approve a_01JX… --session --choice prefix    also commands with the same first words: npm test *
  zotctl approve a_01JX… --edit       with other arguments, or another plan, which you change in $VISUAL or $EDITOR
  zotctl deny a_01JX… --reason "use the staging host"

"zotctl approvals" lists the scopes and choices of each call. A unique prefix of an ID is enough. Approvals do not
expire unless approval.ttl_s is set.
"""


MODES = """\
examples:
  zotctl mode --last                  print the mode: yolo, workspace, ask or read-only
  zotctl mode --session tests ask

yolo runs every call; workspace runs built-in tools in a jail of the working directory and requires approval for what
leads out of it and for extension tools; ask requires approval for write, edit, bash and all extension tools; read-only
denies those.
Rules in config.toml take precedence over the mode. A new mode applies from the next call on.
"""


GRANTS = """\
examples:
  zotctl grants --last                  list what was allowed for the rest of the session: calls, hosts (network), files
  zotctl grants --last --revoke 2       take the second one back
  zotctl grants --last --revoke all

Grants end with their session. What was allowed always is a rule in config.toml, for all sessions: remove it there.
"""


def add(commands: Subparsers) -> None:
    """Register `approvals`, `approve`, `deny`, `grants` and `mode`."""
    listing = commands.add_parser("approvals", help="list pending approvals", epilog=EPILOG)
    listing.set_defaults(run=_list)
    approve = commands.add_parser("approve", help="approve a pending tool call", epilog=EPILOG)
    scope = approve.add_mutually_exclusive_group()
    scope.add_argument("--session", action="store_true", help="also allow similar calls in this session")
    scope.add_argument("--always", action="store_true", help="also allow similar calls in every session, by a rule")
    choice = f"which calls --session or --always covers, as listed by zotctl approvals (default: {asking.SAME})"
    approve.add_argument("--choice", metavar="NAME", help=choice)
    approve.add_argument(
        "--edit", action="store_true", help="change the arguments, or the steps of a plan, in your editor first"
    )
    approve.add_argument("-y", "--yes", action="store_true", help="add the rule without asking; for scripts")
    approve.set_defaults(run=_approve)
    deny = commands.add_parser("deny", help="deny a pending tool call", epilog=EPILOG)
    deny.set_defaults(run=_deny)
    mode = commands.add_parser("mode", help="show or set a session's approval mode", epilog=MODES)
    mode.add_argument("mode", nargs="?", choices=options.MODES, help="the new mode (default: print the current one)")
    link.add_session_flags(mode)
    mode.set_defaults(run=_mode)
    grants = commands.add_parser("grants", help="list what was allowed for a session, or take it back", epilog=GRANTS)
    grants.add_argument("--revoke", metavar="N", help='the number of the grant to take back, or "all"')
    link.add_session_flags(grants)
    grants.set_defaults(run=_grants)
    for decision in (approve, deny):
        decision.add_argument("id", metavar="APPROVAL", help="approval ID, or a unique prefix of it")
        decision.add_argument("--reason", metavar="TEXT", help="the reason, shown to the model and to other clients")
    for parser in (listing, approve, deny, grants, mode):
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _list(args: argparse.Namespace) -> int:
    with link.connect("zotctl", can_approve=True) as connection:
        found = _pending(connection)
    if args.json:
        output.print_json({"v": 1, "approvals": found})
        return 0
    for approval in found:
        print(one_line(f"{text(approval, 'approval')}  in {text(approval, 'session')}{_until(approval)}"))
        print(harmless(asking.shown(approval)))
        for one in asking.lasting_of(approval):
            print(one_line(f"  --{one.scope}{_flag(one.choice)}: {one.text}"))
        print()
    return 0


def _approve(args: argparse.Namespace) -> int:
    scope = "always" if args.always else "session" if args.session else "once"
    with link.connect("zotctl", can_approve=True) as connection:
        approval = _chosen(connection, str(args.id))
        _show(approval)
        if args.edit:
            return _approve_changed(connection, approval, args, scope=scope)
        if scope != "once":
            _check_rule(approval, scope, args.choice or asking.SAME, is_sure=args.yes)
        elif args.choice:
            raise ClientError("--choice needs --session or --always")
        return _decide(connection, approval, args, decision="allow", scope=scope)


def _approve_changed(connection: Connection, approval: Json, args: argparse.Namespace, *, scope: str) -> int:
    if scope != "once" or args.choice:
        raise ClientError("--edit approves this call only; leave out --session, --always and --choice")
    if text(approval, "tool") == asking.QUESTION:
        raise ClientError("a question is answered where it is shown: in zot, on the page, or in an editor")
    before = child(approval, "args")
    call = CallText(text(approval, "tool"), before)

    def take(changed: str) -> int:
        after = call.read(changed)
        own = None if after == call.read(call.written(before)) else after
        return _decide(connection, approval, args, decision="allow", scope=scope, own=own)

    return editor.edit(call.written(before), take, name="zot-call-", suffix=call.suffix)


def _deny(args: argparse.Namespace) -> int:
    with link.connect("zotctl", can_approve=True) as connection:
        approval = _chosen(connection, str(args.id))
        _show(approval)
        return _decide(connection, approval, args, decision="deny", scope="once")


def _decide(
    connection: Connection,
    approval: Json,
    args: argparse.Namespace,
    *,
    decision: str,
    scope: str,
    own: Json | None = None,
) -> int:
    choice = None if decision == "deny" else args.choice
    asking.decide(connection, approval, decision, scope=scope, choice=choice, reason=args.reason, args=own)
    key = text(approval, "approval")
    if args.json:
        output.print_json({"v": 1, "approval": key, "decision": decision, "scope": scope})
    else:
        print(one_line(f"{key} is {'allowed' if decision == 'allow' else 'denied'}"))
    return 0


def _mode(args: argparse.Namespace) -> int:
    with link.connect("zotctl", can_approve=True) as connection:
        session = link.chosen(connection, args)
        key = text(session, "id")
        if args.mode:
            connection.call("set_mode", session=key, mode=args.mode)
            session = connection.call("session.get", session=key)
    if args.json:
        output.print_json({"v": 1, "session": key, "mode": text(session, "mode")})
    else:
        print(one_line(text(session, "mode")))
    return 0


def _grants(args: argparse.Namespace) -> int:
    with link.connect("zotctl", can_approve=True) as connection:
        key = text(link.chosen(connection, args), "id")
        found = children(connection.call("grant.list", session=key), "grants")
        if args.revoke is not None:
            taken = _numbered(found, str(args.revoke))
            found = children(connection.call("grant.revoke", session=key, grants=taken), "grants")
    if args.json:
        output.print_json({"v": 1, "session": key, "grants": found})
        return 0
    rows = [[str(number), text(one, "tool"), text(one, "match")] for number, one in enumerate(found, 1)]
    output.print_table(["", "TOOL", "MATCH"], rows)
    return 0


def _numbered(found: list[Json], word: str) -> list[Json]:
    """Return the grant with this number, or all; raises `ClientError` if there is none."""
    if word == "all":
        return found
    if not (word.isascii() and word.isdecimal() and 1 <= int(word) <= len(found)):
        raise ClientError(f'"{word}" is not the number of a grant of this session: there are {len(found)}')
    return [found[int(word) - 1]]


def _pending(connection: Connection) -> list[Json]:
    return children(connection.call("approval.list"), "approvals")


def _chosen(connection: Connection, word: str) -> Json:
    """Return the pending approval with this ID or unique ID prefix; raises `ClientError` if there is none."""
    pending = _pending(connection)
    found = [one for one in pending if text(one, "approval") == word]
    found = found or [one for one in pending if word and text(one, "approval").startswith(word)]
    if not found:
        raise ClientError(
            f'no pending approval has the ID "{word}"; it may already be decided. To list them, run: zotctl approvals'
        )
    if len(found) > 1:
        names = ", ".join(text(one, "approval") for one in found[:5])
        raise ClientError(f'the ID "{word}" is ambiguous: it matches {names}')
    return found[0]


def _show(approval: Json) -> None:
    """Print the call to standard error, so that standard output has only the result."""
    sys.stderr.write(f"{harmless(asking.shown(approval))}\n")


def _flag(choice: str) -> str:
    """Return the flag that selects this choice."""
    return "" if choice == asking.SAME else f" --choice {choice}"


def _check_rule(approval: Json, scope: str, choice: str, *, is_sure: bool) -> None:
    """Show the rule that comes with the decision; ask before one is saved. Raises `ClientError` if it must not be used."""
    offered = asking.lasting_of(approval)
    if not offered:
        raise ClientError("no rule can cover this call; approve it once, without --session or --always")
    rule = next((one.rules for one in offered if (one.choice, one.scope) == (choice, scope)), None)
    if rule is None:
        flags = ", ".join(f"--{one.scope}{_flag(one.choice)}" for one in offered)
        raise ClientError(f"--{scope}{_flag(choice)} is not available for this call; use {flags}")
    where = "added to config.toml" if scope == "always" else "valid for the rest of the session"
    sys.stderr.write(harmless(f"\nrule, {where}:\n{rule}"))
    if scope == "always" and not is_sure and not _agrees():
        raise ClientError(f"{text(approval, 'approval')} is still pending")


def _agrees() -> bool:
    """Ask on the terminal; raises `ClientError` without one, because the rule was not seen."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise ClientError(
            "cannot ask for confirmation without a terminal; to save the rule without being asked: --always --yes"
        )
    sys.stderr.write("save this rule? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _until(approval: Json) -> str:
    expires = maybe_text(approval, "expires")
    return "" if expires is None else f", until {expires[:19].replace('T', ' ')} UTC"
