"""One prompt from its acceptance to its end, with Ctrl-C in between."""

import os
import signal
from collections.abc import Callable, Iterable
from contextlib import suppress

from zotd.client import slash
from zotd.client.blocking import Connection, Json
from zotd.client.errors import CallError, ClientError
from zotd.client.fields import maybe_text
from zotd.client.interrupts import InterruptedBySignal
from zotd.client.runs import Run, of_run

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it."""

ABORT_S = 5.0
"""How long an aborted run may take to say that it has ended; it takes milliseconds."""

ANSWER_S = 2.0
"""How long it may take to say what became of a prompt; a daemon that does not even say that is asked to abort."""

Show = Callable[[bytes, Json], None]
"""Takes the lines of a run and what is in them."""


def go_on(connection: Connection, session: str) -> Run:
    """Have an attached session go on where it stopped; the run that does, or the first one that waits.

    Raises:
        CallError: there is nothing to go on with, or it is at work.
    """
    _, run = slash.invoke(connection, session, "continue", "")
    assert run is not None, "an answer without a run"
    return run


def start(
    connection: Connection,
    session: str,
    prompt: str,
    when_busy: str | None = None,
    *,
    unattended: str | None = None,
    patience_s: float | None = None,
) -> Run:
    """Give an attached session an input; an interruption before it is accepted aborts it, when it is Ctrl-C.

    `unattended`: `deny` or `park` calls that nobody can decide about; None: as the daemon is configured. `patience_s`:
    how long the run waits for a model that fails, if that is less than configured.
    """
    fields: Json = {"session": session, "message": prompt, "when_busy": when_busy, "unattended": unattended}
    if patience_s is not None:
        fields["patience_s"] = patience_s
    fields["request_id"] = os.urandom(16).hex()
    try:
        return _run_of(connection.call("prompt", fields))
    except InterruptedBySignal as interruption:
        if interruption.number == signal.SIGINT:
            _take_back(connection, session, fields)
        raise


def _take_back(connection: Connection, session: str, prompt: Json) -> None:
    """Undo a prompt whose answer was not waited for. Sent again, it is only answered: it may wait behind another run."""
    with suppress(ClientError):
        if _withdraw(connection, session, _run_of(connection.call("prompt", prompt, timeout_s=ANSWER_S))):
            return
    connection.call("abort", session=session, timeout_s=ABORT_S)


def _run_of(started: Json) -> Run:
    return Run(maybe_text(started, "input"), maybe_text(started, "run"))


def follow(
    connection: Connection, session: str, run: Run, show: Show, *, frames: Iterable[tuple[bytes, Json]] | None = None
) -> int:
    """Show a run to its end: 0; or end it, when Ctrl-C comes, and show how it ends: `INTERRUPTED`.

    Other signals and a lost output are raised by the connection's `Watch`, and leave the run alone. `frames`: where
    events come from, for whoever does something else meanwhile; None: `connection.lines()`.
    """
    try:
        for line, event in of_run(run, session, connection.lines() if frames is None else frames):
            show(line, event)
    except InterruptedBySignal as interruption:
        if interruption.number != signal.SIGINT:
            raise
        _abort(connection, session, run, show)
        return INTERRUPTED
    return 0


def _abort(connection: Connection, session: str, run: Run, show: Show) -> None:
    try:
        if not _withdraw(connection, session, run):
            connection.call("abort", session=session, timeout_s=ABORT_S)
            for line, event in of_run(run, session, connection.lines(ABORT_S)):
                show(line, event)
    except (ClientError, InterruptedBySignal):
        return  # pressed again, or the daemon has no more to say


def _withdraw(connection: Connection, session: str, run: Run) -> bool:
    """Take an input back that has not started: `abort` would end somebody else's run."""
    if run.started or run.run_id is not None:
        return False
    try:
        connection.call("queue.withdraw", session=session, input=run.input_id, timeout_s=ABORT_S)
    except CallError:
        return False  # it has started just now
    return True
