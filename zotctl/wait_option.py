"""The --wait flag: waits for a run and prints its answer."""

import argparse

from zotctl import output
from zotd.client.blocking import Connection
from zotd.client.errors import ClientError
from zotd.client.outcome import Outcome
from zotd.client.running import follow
from zotd.client.runs import Run


def print_answer(connection: Connection, session: str, run: Run, args: argparse.Namespace) -> int:
    """Wait for a run of an attached session and print its answer (with `args.json` as an object); return the exit code.

    Ctrl-C aborts the run; nothing is printed then.

    Raises:
        ClientError: the run failed.
    """
    outcome = Outcome()
    code = follow(connection, session, run, outcome.see_line)
    if code:
        return code
    if outcome.failure is not None:
        raise ClientError(outcome.failure)
    if args.json:
        output.print_json({"v": 1, "session": session, "run": run.run_id, "text": outcome.text})
    else:
        output.print_text(outcome.text)
    return 0
