"""`zotctl usage`: token usage and cost by model, session, directory or user."""

import argparse
import os
import shutil
import sys
from datetime import UTC, date, datetime, timedelta
from functools import partial

from zotctl import link, output
from zotctl.commands import Subparsers
from zotctl.day_bars import DayUsage, drawn
from zotd.client.blocking import Connection, Json
from zotd.client.colour import CYAN
from zotd.client.errors import CallError
from zotd.client.fields import children, number, text

UNITS = {"h": "hours", "d": "days", "w": "weeks"}
"""Units of --since."""

FIGURES = ("input", "output", "cache_read", "cache_write", "attempts", "unknown")

EPILOG = """\
examples:
  zotctl usage --since 7d
  zotctl usage --since 2026-11-01 --by cwd
  zotctl usage --since 30d --by day
  zotctl usage --since 30d --by user
  zotctl usage --by session --json | jq '[.rows[].cost_usd] | add'

Costs use the prices at the time of each request. UNKNOWN counts requests without usage figures, because the provider
sent none or the request was interrupted; they are in no sum. ESTIMATED is what budgets charge for them, and for models
without a known price, in USD. Searches of the web by a vendor's model are in the row of that model. Deleted
sessions are not included. The second table lists the budgets of today, whatever --since says, and of the sessions in use.

On a terminal, and with --by day, the days follow as bars of their cost, or of their tokens if no cost is known. A day is one
of the daemon's time zone. NO_COLOR switches the colour off, TERM=dumb the block characters.
"""

NO_USER = "(no user)"
"""What is shown for sessions without a user; nothing else has an empty key."""

DAYS_SHOWN = 14
"""Days that are drawn, unless --since or --by day says otherwise."""

WIDTH = 80
"""Columns without a terminal."""


def add(commands: Subparsers) -> None:
    """Register `usage`."""
    parser = commands.add_parser("usage", help="show token usage and cost", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "--since", type=_time, metavar="WHEN", help="12h, 7d, 2w, a date or a time (default: everything)"
    )
    parser.add_argument(
        "--by",
        choices=["model", "session", "cwd", "user", "day"],
        default="model",
        help="what a row stands for (default: model)",
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    since = None if args.since is None else args.since.isoformat()
    with link.connect("zotctl") as connection:
        report = connection.call("usage.report", since=since, by=args.by)
        days = [] if args.json else _days(connection, args, report)
    rows, budgets = children(report, "rows"), children(report, "budgets")
    if args.by == "day":
        rows.sort(key=lambda row: text(row, "key"))
    if args.json:
        output.print_json({"v": 1, "since": since, "by": args.by, "rows": rows, "budgets": budgets})
        return 0
    head = ["USD", "ESTIMATED", "INPUT", "OUTPUT", "CACHE READ", "CACHE WRITE", "ATTEMPTS", "UNKNOWN", args.by.upper()]
    output.print_table(head, [_row(row) for row in rows])
    if days:
        print()
        paint = partial(output.painted, hue=CYAN)
        output.print_lines(drawn(days, width=_width(), has_blocks=_has_blocks(), paint=paint))
    if budgets:
        print()
        output.print_table(["BUDGET", "SPENT", "LIMIT", "LEFT"], [line for one in budgets for line in _budget(one)])
    return 0


def _days(connection: Connection, args: argparse.Namespace, report: Json) -> list[DayUsage]:
    """Return the days to draw; none if they are not wanted, or if the daemon is too old to know them."""
    if args.by != "day":
        if not sys.stdout.isatty():
            return []
        since = args.since or datetime.now(UTC) - timedelta(days=DAYS_SHOWN)
        try:
            report = connection.call("usage.report", since=since.isoformat(), by="day")
        except CallError as error:
            if error.code != "bad_request":
                raise
            return []
    return [one for row in children(report, "rows") if (one := _day(row)) is not None]


def _day(row: Json) -> DayUsage | None:
    """Return the usage of a row; None for one that is no day, such as that of a damaged record."""
    try:
        day = date.fromisoformat(text(row, "key"))
    except ValueError:
        return None
    cost = row.get("cost_usd")
    tokens = sum(number(row, figure) for figure in FIGURES[:4])
    return DayUsage(day, cost if isinstance(cost, int | float) else 0.0, tokens)


def _width() -> int:
    return shutil.get_terminal_size((WIDTH, 0)).columns


def _has_blocks() -> bool:
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    return encoding == "utf8" and os.environ.get("TERM") != "dumb"


def _row(row: Json) -> list[str]:
    name = text(row, "name")
    key = text(row, "key") or NO_USER
    return [
        _dollars(row, "cost_usd"),
        _dollars(row, "estimated_usd"),
        *(str(number(row, figure)) for figure in FIGURES),
        f"{key}  {name}" if name else key,
    ]


def _budget(state: Json) -> list[list[str]]:
    """Return a row for the cost limit and one for the token limit, as far as they are set."""
    whose = f"{text(state, 'session')}  {text(state, 'name')}".strip() or "today"
    money = [_dollars(state, f"{part}_usd") for part in ("spent", "limit", "left")]
    tokens = [_tokens(state, f"{part}_tokens") for part in ("spent", "limit", "left")]
    return [[whose, *cells] for cells in (money, tokens) if cells[1]]


def _dollars(row: Json, field: str) -> str:
    amount = row.get(field)
    return f"{amount:.4f}" if isinstance(amount, int | float) else ""


def _tokens(state: Json, field: str) -> str:
    return "" if state.get(field) is None else f"{number(state, field)} tokens"


def _time(word: str) -> datetime:
    """Convert --since to a time in UTC; a date means midnight in the local time zone."""
    now = datetime.now(UTC)
    count, unit = word[:-1], UNITS.get(word[-1:])
    try:
        if unit is not None and count.isdecimal():
            return now - timedelta(**{unit: int(count)})
        return datetime.fromisoformat(word).astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise argparse.ArgumentTypeError(
            f'invalid time "{word}"; use a form such as 12h, 7d, 2w, 2026-11-01 or 2026-11-01T08:00'
        ) from error
