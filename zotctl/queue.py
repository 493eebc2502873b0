"""`zotctl queue`, `continue` and `retry`: queued inputs, interrupted runs and delayed model requests."""

import argparse
import os
import sys

from zotctl import link, output, wait_option
from zotctl.commands import Subparsers
from zotd.client import place
from zotd.client.blocking import Connection, Json
from zotd.client.errors import ClientError
from zotd.client.fields import children, text
from zotd.client.interrupts import Watch
from zotd.client.running import go_on
from zotd.sanitize import one_line

EPILOG = """\
examples:
  zotctl queue --last                              list the queued inputs in order
  zotctl queue --last withdraw i_01JX…             remove an input from the queue
  zotctl queue --last move i_01JX… 1               move it to the front
  zotctl continue --last --wait

After a failed or aborted run, and after a crash, the queue is held: `zotctl continue` or the next prompt resumes it. A
unique prefix of an ID is enough.
"""

TEXT_CHARS = 60
"""Most characters of an input shown in the table."""


def add(commands: Subparsers) -> None:
    """Register `queue`, `continue` and `retry`."""
    queue = commands.add_parser("queue", help="list or change the queued inputs of a session", epilog=EPILOG)
    queue.add_argument("change", nargs="*", help="withdraw ID, or move ID POSITION, from 1 (default: list the queue)")
    queue.set_defaults(run=_queue)
    going_on = commands.add_parser("continue", help="resume a session where it stopped", epilog=EPILOG)
    going_on.add_argument("--wait", action="store_true", help="wait for the run and print its answer; Ctrl-C aborts it")
    going_on.set_defaults(run=_continue)
    retrying = commands.add_parser(
        "retry",
        help="retry a waiting model request now instead of at the end of its pause",
        epilog="example: zotctl retry --last",
    )
    retrying.set_defaults(run=_retry)
    for parser in (queue, going_on, retrying):
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        link.add_session_flags(parser)
        parser.add_argument("--json", action="store_true", help="print the result as JSON")


def _queue(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection:
        session = text(link.chosen(connection, args), "id")
        if args.change:
            _change(connection, session, args.change)
        found = connection.call("queue.list", session=session)
    if args.json:
        output.print_json({"v": 1, "session": session, **found})
    else:
        _show(found)
    return 0


def _change(connection: Connection, session: str, words: list[str]) -> None:
    found = connection.call("queue.list", session=session)
    match words:
        case ["withdraw", key]:
            connection.call("queue.withdraw", session=session, input=_chosen(found, key))
        case ["move", key, place] if place.isdecimal():
            connection.call("queue.move", session=session, input=_chosen(found, key), position=int(place))
        case _:
            raise ClientError(f'unknown queue command "{" ".join(words)}"; use withdraw ID or move ID POSITION')


def _chosen(found: Json, word: str) -> str:
    """Return the ID of the only queued input whose ID begins with `word`; raises `ClientError`."""
    ids = [text(item, "id") for item in children(found, "items")]
    fitting = [key for key in ids if key.startswith(word)]
    if len(fitting) != 1:
        what = "no queued input has" if not fitting else "more than one queued input has"
        raise ClientError(f'{what} an ID that begins with "{word}"; `zotctl queue` lists them')
    return fitting[0]


def _show(found: Json) -> None:
    items = children(found, "items")
    rows = [[text(item, name) for name in ("id", "mode", "sender")] + [_words(item)] for item in items]
    output.print_table(["ID", "MODE", "FROM", "TEXT"], rows)
    if found.get("held") is True:
        print("held: `zotctl continue` or the next prompt resumes the queue")


def _words(item: Json) -> str:
    return " ".join(text(item, "text").split())[:TEXT_CHARS]


def _retry(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection:
        session = text(link.chosen(connection, args), "id")
        connection.call("retry", session=session)
    if args.json:
        output.print_json({"v": 1, "session": session, "retried": True})
    else:
        print(one_line(f"{session}: retrying now"))
    return 0


def _continue(args: argparse.Namespace) -> int:
    watch = Watch(sys.stdout.fileno())
    with link.connect("zotctl", watch.wait) as connection, watch:
        session = text(link.chosen(connection, args), "id")
        if args.wait:
            connection.call("attach", session=session, limit=1, env=place.of(os.environ).variables)
        return _go_on(connection, session, args)


def _go_on(connection: Connection, session: str, args: argparse.Namespace) -> int:
    run = go_on(connection, session)
    if args.wait:
        return wait_option.print_answer(connection, session, run, args)
    if args.json:
        output.print_json({"v": 1, "session": session, "run": run.run_id, "text": None})
    else:
        print(one_line(f"{session}: resumed"))
    return 0
