"""`zotctl export`: a session's transcript as a file."""

import argparse
import sys
from collections.abc import Iterator

from zotctl import link, output
from zotctl.commands import Commands
from zotd.client.blocking import Connection
from zotd.client.errors import ClientError
from zotd.client.fields import number, text


def add(commands: Commands) -> None:
    """`export`."""
    parser = commands.add_parser(
        "export", help="a session's transcript", epilog="example: zotctl export --last --format markdown -o talk.md"
    )
    link.add_session_flags(parser)
    parser.add_argument("--format", choices=["jsonl", "markdown"], default="jsonl")
    parser.add_argument("-o", "--output", metavar="FILE", help="instead of standard output; replaced when it exists")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection, output.progress("exporting"):
        pages = _pages(connection, text(link.chosen(connection, args), "id"), args.format)
        if args.output is None:
            sys.stdout.writelines(pages)
        else:
            _save(pages, args.output)
    return 0


def _pages(connection: Connection, session: str, form: str) -> Iterator[str]:
    after = 0
    while True:
        page = connection.call("session.export", session=session, format=form, after=after)
        yield text(page, "text")
        if page.get("next") is None:
            return
        after = number(page, "next")


def _save(pages: Iterator[str], path: str) -> None:
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(pages)
    except OSError as error:
        raise ClientError(f"cannot write {path}: {error.strerror}") from error
