"""`zotctl search`: full-text search in all sessions."""

import argparse
import sys

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client import colour
from zotd.client.blocking import Connection, Json
from zotd.client.fields import children, maybe_text, text
from zotd.client.options import positive
from zotd.sanitize import one_line

SHOWN = 20
"""Default of --limit."""

PAGE = 100
"""Messages per request."""

EPILOG = """\
examples:
  zotctl search flaky test
  zotctl search '"connection reset"' --limit 5
  zotctl search migration --json | jq -r '.hits[].session'

Finds messages that contain all the words, newest first. Words in double quotes must be adjacent.
"""


def add(commands: Subparsers) -> None:
    """Register `search`."""
    parser = commands.add_parser("search", help="search the messages of all sessions", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("words", nargs="+", metavar="WORD", help="words that a message must contain")
    parser.add_argument(
        "--limit", type=positive, default=SHOWN, metavar="N", help=f"maximum number of messages ({SHOWN})"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection, output.progress("searching"):
        hits, complete = _find(connection, " ".join(args.words), max(1, args.limit))
    if args.json:
        output.print_json({"v": 1, "hits": hits, "complete": complete})
        return 0
    for hit in hits:
        _print(hit)
    if not complete:
        sys.stderr.write("zotctl: some recent messages are not indexed yet; search again in a moment\n")
    return 0


def _find(connection: Connection, query: str, limit: int) -> tuple[list[Json], bool]:
    """Return the newest matches, and whether the whole index was searched."""
    hits: list[Json] = []
    complete = True
    cursor: str | None = None
    while True:
        wanted = min(PAGE, limit - len(hits))
        page = connection.call("session.search", query=query, cursor=cursor, limit=wanted)
        hits += children(page, "hits")
        complete = complete and page.get("complete") is not False
        cursor = maybe_text(page, "cursor")
        if cursor is None or len(hits) >= limit:
            return hits, complete


def _print(hit: Json) -> None:
    time = output.moment(text(hit, "time"))
    head = f"{time}  {text(hit, 'session')}  {text(hit, 'name')}"
    print(output.painted(one_line(head), colour.BOLD))
    print(f"  {one_line(text(hit, 'role'))}: {one_line(text(hit, 'snippet'))}")
