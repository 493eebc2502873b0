"""`zotctl fleet run`: has the prompts of a file run by the daemons of a fleet, and prints their results.

    read FILE ──> submit (again, if that was interrupted) ──> results, as they come ──> all are there

The batch belongs to the daemons. Ending this program loses nothing: the same command goes on, and prints all results.
"""

import argparse
import shlex
import sys
from pathlib import Path

from zotctl import fleet_file, fleet_results
from zotctl.fleet_results import Link
from zotd.client.blocking import Json
from zotd.client.fields import number
from zotd.client.humanize import counted
from zotd.sanitize import one_line

EPILOG = """\
examples:
  zotctl fleet run prompts.jsonl > results.jsonl
  zotctl fleet run prompts.jsonl --priority 5 --label gpu --limit-usd 2 --retries 1
  zotctl fleet run prompts.jsonl --after 250 >> results.jsonl

Each line of the file is an object with "prompt" and, if wanted, "cwd", "labels", "provider", "model", "mode", "limit_usd",
"limit_s" and "retries". Each result is printed as an object with the "line" of its prompt. Standard error shows the progress
of the batch: on a terminal in a line that is rewritten, elsewhere in a line a minute. Ctrl-C ends this command and not
the batch: run it again to print the results from the first, or with --after PLACE those behind the last one that you have.

The exit code is 0 if all prompts were done, and 1 if one was not.
"""


def add(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> argparse.ArgumentParser:
    """Register the action; return its parser."""
    parser = actions.add_parser(
        "run", help="have the prompts of a file run, and print the results as JSON lines", epilog=EPILOG
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("file", metavar="FILE", help="file with a JSON object for each prompt; - for standard input")
    parser.add_argument("--id", metavar="ID", help="name of the batch; default: made of the file's name and content")
    parser.add_argument("--priority", type=int, default=0, metavar="N", help="batches with a higher one come first")
    parser.add_argument("--cwd", metavar="DIR", help="directory of prompts that name none; default: this one")
    parser.add_argument(
        "--label", action="append", dest="labels", metavar="LABEL", help="of daemons that may run them; repeatable"
    )
    parser.add_argument("--provider", metavar="NAME", help="vendor of the model")
    parser.add_argument("--model", metavar="NAME", help="the model")
    parser.add_argument("--mode", metavar="MODE", help="approval mode of the sessions")
    parser.add_argument("--limit-usd", type=float, metavar="USD", help="budget of each prompt")
    parser.add_argument("--limit-s", type=float, metavar="S", help="longest time of each attempt in seconds")
    parser.add_argument("--retries", type=int, metavar="N", help="how often a prompt that has failed is run again")
    fleet_results.add_flags(parser)
    parser.add_argument("--detach", action="store_true", help="submit the prompts, and do not wait for results")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Submit the prompts of a file, print their results, and return the exit code."""
    defaults: Json = {
        name: value
        for name in ("labels", "provider", "model", "mode", "limit_usd", "limit_s", "retries")
        if (value := getattr(args, name)) is not None
    }
    data = fleet_file.read(args.file)
    orders = fleet_file.orders(args.file, data, str(Path(args.cwd or ".").absolute()), defaults)
    batch = args.id or fleet_file.batch_id(args.file, orders)
    daemon = Link("zotctl")
    try:
        with fleet_results.advice():
            added = sum(
                number(daemon.call("batch.submit", batch=batch, prompts=chunk, priority=args.priority), "added")
                for chunk in fleet_file.chunks(orders)
            )
            if not args.quiet:
                _say(f"batch {batch}: {counted(added, 'prompt')} submitted, {len(orders) - added} were stored before")
            return 0 if args.detach else fleet_results.print_all(daemon, batch, args)
    except KeyboardInterrupt:
        _say(f"the batch {batch} goes on; run the same command again to print its results")
        _say(f"to end it, run: zotctl fleet cancel {shlex.quote(batch)}")
        raise
    finally:
        daemon.close()


def _say(sentence: str) -> None:
    sys.stderr.write(f"zotctl: {one_line(sentence)}\n")
