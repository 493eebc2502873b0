"""`zotctl send`: a prompt for a session, from a script or another terminal."""

import argparse
import os
import sys

from zotctl import link, output
from zotctl.commands import Commands
from zotd.client.blocking import Connection, Json
from zotd.client.environment import shared
from zotd.client.errors import ClientError
from zotd.client.fields import text
from zotd.client.interrupts import Watch
from zotd.client.outcome import Outcome
from zotd.client.running import follow, start


def add(commands: Commands) -> None:
    """`send`."""
    parser = commands.add_parser(
        "send", help="give a session a prompt", epilog='example: zotctl send --session tests "run them again" --wait'
    )
    link.add_session_flags(parser)
    parser.add_argument("prompt", help="the prompt; - reads it from standard input")
    parser.add_argument("--wait", action="store_true", help="print the answer; Ctrl-C ends the run")
    parser.add_argument("--when-busy", choices=["queue", "steer", "reject"], default="queue")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    prompt = sys.stdin.read() if args.prompt == "-" else str(args.prompt)
    watch = Watch(sys.stdout.fileno())
    with link.connect("zotctl", watch.wait) as connection, watch:
        session = text(link.chosen(connection, args), "id")
        if args.wait:
            return _wait(connection, session, prompt, args)
        answer = connection.call("prompt", session=session, message=prompt, when_busy=args.when_busy)
    if args.json:
        output.print_json({"v": 1, "session": session, **answer})
    else:
        print(f"{session}: {_words(answer)}")
    return 0


def _wait(connection: Connection, session: str, prompt: str, args: argparse.Namespace) -> int:
    connection.call("attach", session=session, limit=1, env=shared(os.environ))
    run = start(connection, session, prompt, args.when_busy)
    outcome = Outcome()
    code = follow(connection, session, run, outcome.see_line)
    if code:
        return code
    if outcome.failure is not None:
        raise ClientError(outcome.failure)
    if args.json:
        output.print_json({"v": 1, "session": session, "run": run.run_id, "text": outcome.text})
    else:
        print(outcome.text)
    return 0


def _words(answer: Json) -> str:
    return "started" if answer.get("started") is True else f"waits at position {text(answer, 'position')}"
