"""`zotctl fleet results`: prints the results of a batch, as they come."""

import argparse
import shlex
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

from zotctl import link, output
from zotctl.fleet_progress import LOOK_S, Progress
from zotd.client.blocking import CALL_S, Connection, Json, Wait, readable
from zotd.client.errors import CallError, ClientError, ConnectionLostError, NoAnswerError, NotRunningError
from zotd.client.fields import children, number, text
from zotd.sanitize import one_line

AWAY_S = 60.0
"""How long a daemon or its database may be away while results are awaited."""

AGAIN_S = 1.0
"""Time between two attempts to reach it."""

AWAY = (ConnectionLostError, NoAnswerError, NotRunningError)

STORAGE_BLOCKED = "storage_blocked"
"""Code of a refusal by a daemon whose database is away."""

EPILOG = """\
examples:
  zotctl fleet results prompts-0123456789ab > results.jsonl
  zotctl fleet results prompts-0123456789ab --after 250 >> results.jsonl

Waits until all prompts of the batch have a result. The exit code is 0 if all were done, and 1 if one was not.
"""


def add(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Register the action."""
    parser = actions.add_parser(
        "results", help="print the results of a batch as JSON lines, as they come", epilog=EPILOG
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("batch", metavar="BATCH", help="its ID, as `zotctl fleet batches` lists it")
    add_flags(parser)
    parser.set_defaults(run=_run)


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags of commands that print results."""
    parser.add_argument("--after", type=int, default=0, metavar="PLACE", help="print only results behind this place")
    parser.add_argument(
        "-q", "--quiet", action="store_true", help="print only results and errors, and not the progress of the batch"
    )


def passes(error: ClientError) -> bool:
    """Return whether the same command may succeed later: the daemon or its database is away."""
    return isinstance(error, AWAY) or (isinstance(error, CallError) and error.code == STORAGE_BLOCKED)


@contextmanager
def advice() -> Iterator[None]:
    """Add to an error that `passes` that the command can be run again."""
    try:
        yield
    except ClientError as error:
        if not passes(error):
            raise
        raise ClientError(f"{error}; nothing is lost: run the same command again") from error


class Link:
    """A connection to the daemon that is made again when it was lost."""

    def __init__(self, name: str, wait: Wait = readable, pause: Callable[[float], object] = time.sleep) -> None:
        """`name` and `wait` as of `link.connect`; `pause` sleeps for some seconds."""
        self._name = name
        self._wait = wait
        self._pause = pause
        self._connection: Connection | None = None

    def connect(self) -> Connection:
        """Return the connection, which is made if there is none; raises ClientError."""
        if self._connection is None:
            self._connection = link.connect(self._name, self._wait)
        return self._connection

    def once(self, command: str, fields: Json, timeout_s: float = CALL_S) -> Json:
        """Return the response of a command; raises ClientError."""
        return self.connect().call(command, fields, timeout_s=timeout_s)

    def call(self, command: str, /, **fields: object) -> Json:
        """Return the response of a command that may be repeated; raises ClientError.

        It is, for `AWAY_S` from the first failure, while the daemon or its database is away.
        """
        deadline: float | None = None
        while True:
            try:
                return self.once(command, fields, LOOK_S + CALL_S)
            except ClientError as error:
                now = time.monotonic()
                deadline = now + AWAY_S if deadline is None else deadline  # the call itself may have taken `LOOK_S`
                if not passes(error) or now > deadline:
                    raise
                if isinstance(error, AWAY):
                    self.close()
            self._pause(AGAIN_S)

    def close(self) -> None:
        """Close it."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def awaited(daemon: Link, batch: str, after: int, progress: Progress) -> Generator[Json, None, None]:
    """Yield the results of a batch behind a place, as they come, until all are there; tell meanwhile how far it is."""
    try:
        while True:
            page = daemon.call("batch.results", batch=batch, after=after, wait_s=progress.look_s)
            found = children(page, "results")
            for result in found:
                progress.add(result)
                yield result
            progress.tell(page)
            if found:
                after = number(found[-1], "place")
            elif not number(page, "left"):
                return
    finally:
        progress.hide()


def print_all(daemon: Link, batch: str, args: argparse.Namespace) -> int:
    """Print the results as they come, with the flags of `add_flags`; return the exit code."""
    progress, code = Progress("zotctl", after=args.after, quiet=args.quiet), 0
    for result in awaited(daemon, batch, args.after, progress):
        output.print_json(as_line(batch, result))
        sys.stdout.flush()  # each result is there when it is shown
        if text(result, "state") != "done":
            code = 1
    return code


def as_line(batch: str, result: Json) -> Json:
    """Return a result as it is printed."""
    others = {name: value for name, value in result.items() if name != "number"}
    return {"v": 1, "line": number(result, "number"), "batch": batch, **others}


def _run(args: argparse.Namespace) -> int:
    daemon = Link("zotctl")
    try:
        with advice():
            return print_all(daemon, args.batch, args)
    except KeyboardInterrupt:
        again = f"the batch {args.batch} goes on; to end it, run: zotctl fleet cancel {shlex.quote(args.batch)}"
        sys.stderr.write(f"zotctl: {one_line(again)}\n")
        raise
    finally:
        daemon.close()
