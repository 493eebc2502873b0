"""`zot -p --fleet`: has any daemon of the database run one prompt, as a batch of one, and prints the answer.

The prompt belongs to the daemons. Ctrl-C cancels it. After SIGTERM, a lost terminal or a closed output it goes on, and
standard error names its batch.
"""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from signal import SIGINT

from zotctl import oneshot, output, parser_tree
from zotctl.fleet_progress import Progress
from zotctl.fleet_results import Link, as_line, awaited, passes
from zotd.client import place
from zotd.client.blocking import Json
from zotd.client.errors import CallError, ClientError
from zotd.client.fields import children, number, strings, text
from zotd.client.interrupts import InterruptedBySignal, OutputLostError, Watch
from zotd.client.options import parser
from zotd.client.running import ANSWER_S, INTERRUPTED
from zotd.sanitize import one_line

FLAGS = ("--label", "--provider", "--model", "--mode", "--budget-usd", "--cwd")
"""What goes with `--fleet`, as messages name it."""

TAKEN = frozenset(
    {"prompt", "print", "json", "fleet", "labels", "new", "no_color", "provider", "model", "mode", "budget_usd", "cwd"}
)
"""The arguments that go with it. All others are settings of a session that this daemon makes."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `zot` with `argv` (default: `sys.argv`) and return the exit code: 0, 1, 2 for bad usage, 130 after Ctrl-C."""
    args = parser().parse_args(argv)
    refusal = _refusal(args)
    if refusal:
        return oneshot.failed(refusal, as_json=False, code=2)
    try:
        entered = oneshot.entered(args.prompt, needed=True)
        if isinstance(entered, tuple):
            return oneshot.failed("--fleet takes a prompt and no slash command", as_json=args.json, code=2)
        code = _run(args, _order(args, entered))
        sys.stdout.flush()
    except CallError as error:
        return oneshot.failed(error.sentence, as_json=args.json, code=2 if error.code == "bad_request" else 1)
    except ClientError as error:
        return oneshot.failed(str(error), as_json=args.json)
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        return output.lost("zot", error)
    return code


def _refusal(args: argparse.Namespace) -> str:
    """Return what does not go with `--fleet`; empty if everything does."""
    for action in parser_tree.arguments(parser()):
        is_given = getattr(args, action.dest, action.default) != action.default
        if action.option_strings and action.dest not in TAKEN and is_given:
            return f"{action.option_strings[-1]} does not go with --fleet; these do: {', '.join(FLAGS)}"
    if not args.print and not args.json and sys.stdin is not None and sys.stdin.isatty():
        return "--fleet is for a single prompt: add -p or --json"
    return ""


def _order(args: argparse.Namespace, prompt: str) -> Json:
    """Return the prompt as `batch.submit` takes it; raises ClientError."""
    where = place.of(os.environ)
    # Not `where.directory` for this machine: the directory may be there only on the one that runs the prompt.
    cwd = where.directory(args.cwd) if where.is_remote else str(Path(args.cwd or ".").absolute())
    if cwd is None:
        raise ClientError(f"a prompt for {where.name} needs a directory of the machine that runs it; add --cwd /path")
    wanted: Json = {
        "labels": args.labels,
        "provider": args.provider,
        "model": args.model,
        "mode": args.mode,
        "limit_usd": args.budget_usd,
    }
    order: Json = {"number": 1, "message": prompt, "cwd": os.path.normpath(cwd)}
    return order | {name: value for name, value in wanted.items() if value is not None}


def _run(args: argparse.Namespace, order: Json) -> int:
    batch, watch = f"prompt-{os.urandom(6).hex()}", Watch(sys.stdout.fileno())
    daemon = Link("zot", watch.wait, lambda seconds: watch.wait_any([], seconds))
    try:
        daemon.connect()
        with watch:  # from here on a signal must not lose the prompt
            _submit(daemon, batch, order)
            result = _result(daemon, batch, order)
            return _print(batch, result, as_json=args.json)
    except InterruptedBySignal as reason:
        if reason.number == SIGINT:
            return _cancel(daemon, batch, order)
        return _leave(batch)
    except (BrokenPipeError, OutputLostError):
        return _leave(batch)
    except ClientError as error:
        if not passes(error):
            raise
        raise ClientError(f"{error}; {_later(batch)}") from error
    finally:
        daemon.close()


def _submit(daemon: Link, batch: str, order: Json) -> None:
    try:
        daemon.call("batch.submit", batch=batch, prompts=[order])
    except ClientError as error:
        if not passes(error):
            raise
        again = f"zotctl fleet results {shlex.quote(batch)}"
        raise ClientError(f"{error}; if the prompt was stored all the same, `{again}` prints its result") from error


def _result(daemon: Link, batch: str, order: Json) -> Json:
    _tell_why_it_waits(daemon, order)
    results = awaited(daemon, batch, 0, Progress("zot", lines=False))
    try:
        return next(results)
    finally:
        results.close()


def _tell_why_it_waits(daemon: Link, order: Json) -> None:
    labels = sorted(set(strings(order, "labels")))
    if not labels:  # each daemon has them all, and the list costs the database a count of all sessions
        return
    for one in children(daemon.call("fleet.list"), "waiting"):
        if strings(one, "labels") == labels and not number(one, "daemons"):
            words = f"no daemon has the labels {', '.join(labels)}; the prompt waits for one"
            sys.stderr.write(f"zot: {one_line(words)}\n")


def _print(batch: str, result: Json, *, as_json: bool) -> int:
    is_done = text(result, "state") == "done"
    if as_json:
        output.print_json(as_line(batch, result))
        sys.stdout.flush()
    elif is_done:
        output.print_text(text(result, "text"))
    if is_done:
        return 0
    session = text(result, "session")
    sentence = text(result, "error") + (f"; to see what it did, run: zot --session {session}" if session else "")
    return oneshot.failed(sentence, as_json=False)


def _cancel(daemon: Link, batch: str, order: Json) -> int:
    """Cancel the prompt, as Ctrl-C does with the run of `zot -p`; return the exit code."""
    try:
        # Repeated, because it may not have been answered; what is there is not added again.
        daemon.once("batch.submit", {"batch": batch, "prompts": [order]}, ANSWER_S)
        daemon.once("batch.cancel", {"batch": batch}, ANSWER_S)
    except (ClientError, KeyboardInterrupt):
        words = f"the prompt may go on; to cancel it, run: zotctl fleet cancel {shlex.quote(batch)}"
        sys.stderr.write(f"zot: {one_line(words)}\n")
    return INTERRUPTED


def _leave(batch: str) -> int:
    """Say how to get the result, when its reader has gone; return the exit code."""
    output.forget_stdout()
    sys.stderr.write(f"zot: {one_line(_later(batch))}\n")
    return 1


def _later(batch: str) -> str:
    return f"the prompt goes on; to print its result, run: zotctl fleet results {shlex.quote(batch)}"
