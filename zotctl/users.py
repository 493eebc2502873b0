"""`zotctl users`: whose sessions there are, and what the quotas leave them (`docs/users.md`)."""

import argparse

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client.blocking import Json
from zotd.client.fields import children, number, text

EPILOG = """\
examples:
  zotctl users
  zotctl users --json | jq '.users[] | select(.spent_usd > 1)'
  zotctl sessions --user alice

USD TODAY is what the sessions of a user have spent since 00:00 UTC, with estimates, also those that were deleted. The limits
are those of [users.NAME] in config.toml of this daemon.
"""


def add(commands: Subparsers) -> None:
    """Register `users`."""
    parser = commands.add_parser("users", help="list users, with what they have and may spend today", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection:
        found = connection.call("users.list")
    if args.json:
        output.print_json({"v": 1, **found})
        return 0
    output.print_table(
        ["USER", "SESSIONS", "LIMIT", "USD TODAY", "LIMIT"], [_row(one) for one in children(found, "users")]
    )
    return 0


def _row(one: Json) -> list[str]:
    limit = one.get("sessions_limit")
    shown = "none" if limit is None else str(limit)
    return [text(one, "user"), str(number(one, "sessions")), shown, _usd(one, "spent_usd"), _usd(one, "usd_per_day")]


def _usd(one: Json, field: str) -> str:
    amount = one.get(field)
    return f"{amount:.4f}" if isinstance(amount, int | float) else "none"
