"""`zotctl send`: sends a prompt or a slash command to a session, from a script or another terminal."""

import argparse
import os
import sys

from zotctl import link, output, wait_option
from zotctl.commands import Subparsers
from zotd.client import place, slash
from zotd.client.blocking import Connection, Json
from zotd.client.errors import ClientError
from zotd.client.fields import text
from zotd.client.interrupts import Watch
from zotd.client.running import start
from zotd.wire import slash_lines

EPILOG = """\
examples:
  zotctl send --session tests "run them again" --wait
  zotctl send --session tests "/todo add milk"
  zotctl send --session tests --steer "and skip the slow ones"
  git diff | zotctl send --last -

/NAME is a slash command of the daemon or of an extension: its output is printed, and with --wait the answer of the run
that it starts. To send a prompt that begins with a slash, type two slashes or use standard input, which is never read
as a command.
"""


def add(commands: Subparsers) -> None:
    """Register `send`."""
    parser = commands.add_parser("send", help="send a prompt or a slash command to a session", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    link.add_session_flags(parser)
    parser.add_argument("prompt", help="a prompt, or /NAME ARGUMENTS; - reads a prompt from standard input")
    parser.add_argument("--wait", action="store_true", help="wait for the run and print its answer; Ctrl-C aborts it")
    busy = parser.add_mutually_exclusive_group()
    busy.add_argument(
        "--when-busy",
        choices=["queue", "steer", "reject"],
        help="what to do with a prompt during a run (default: queue)",
    )
    for word, meaning in ("steer", "add the prompt to the active run"), ("reject", "fail if a run is active"):
        busy.add_argument(f"--{word}", action="store_const", const=word, dest="when_busy", help=meaning)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    line = str(args.prompt)
    command = None if line == "-" else slash_lines.parsed(line)
    if command is not None and args.when_busy is not None:
        raise ClientError(
            "--when-busy, --steer and --reject apply to prompts; a slash command runs at once, and a run it starts is queued"
        )
    prompt = sys.stdin.buffer.read().decode(errors="replace") if line == "-" else slash_lines.unescaped(line)
    watch = Watch(sys.stdout.fileno())
    with link.connect("zotctl", watch.wait) as connection, watch:
        session = text(link.chosen(connection, args), "id")
        if args.wait:
            connection.call("attach", session=session, limit=1, env=place.of(os.environ).variables)
        if command is not None:
            return _command(connection, session, command, args)
        if args.wait:
            run = start(connection, session, prompt, args.when_busy)
            return wait_option.print_answer(connection, session, run, args)
        answer = connection.call("prompt", session=session, message=prompt, when_busy=args.when_busy)
    return _tell(session, answer, args)


def _command(connection: Connection, session: str, command: tuple[str, str], args: argparse.Namespace) -> int:
    answer, run = slash.invoke(connection, session, *command)
    if run is not None and args.wait:
        return wait_option.print_answer(connection, session, run, args)
    return _tell(session, answer, args)


def _tell(session: str, answer: Json, args: argparse.Namespace) -> int:
    if args.json:
        output.print_json({"v": 1, "session": session, **answer})
    else:
        output.print_text(text(answer, "text") or f"{session}: {_progress(answer)}")
    return 0


def _progress(answer: Json) -> str:
    if "position" in answer:
        return f"queued at position {text(answer, 'position')}"
    if "input" in answer or "run" in answer:
        return "started"
    return "a panel was opened" if answer.get("action") == "open_panel" else "done"
