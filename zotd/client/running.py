"""Sends a prompt and follows its run, with Ctrl-C at any time."""

import os
import signal
from collections.abc import Callable, Iterable

from zotd.client import slash
from zotd.client.blocking import CALL_S, Connection, Json
from zotd.client.errors import CallError, ClientError
from zotd.client.interrupts import InterruptedBySignal
from zotd.client.runs import Run, of_run

INTERRUPTED = 130
"""Exit code after Ctrl-C, as in shells."""

ABORT_S = 5.0
"""Timeout for the end of an aborted run in seconds; it takes milliseconds."""

ANSWER_S = 2.0
"""Timeout in seconds for learning what became of an interrupted prompt; after that, the session's run is aborted."""

Show = Callable[[bytes, Json], None]
"""Gets each line of a run, and the event in it."""


def go_on(connection: Connection, session: str) -> Run:
    """Resume an attached session; return its run, or that of the first queued input.

    Raises:
        CallError: there is nothing to resume, or the session is busy.
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
    """Send a prompt to an attached session. Ctrl-C before it is accepted aborts it.

    `unattended` is `deny` or `park`, for approvals that no client can decide; None: as configured. `patience_s` is how
    long the run retries a failing model, if less than configured.
    """
    fields: Json = {"message": prompt, "when_busy": when_busy, "unattended": unattended, "patience_s": patience_s}
    run = slash.run_of(_submitted(connection, session, "prompt", fields, timeout_s=CALL_S))
    assert run is not None, "an answer without a run"
    return run


def start_command(
    connection: Connection,
    session: str,
    command: tuple[str, str],
    *,
    unattended: str | None = None,
    patience_s: float | None = None,
) -> tuple[Json, Run | None]:
    """Run a slash command, given as name and arguments; return the response (`CommandResult`) and the run that it starts.

    Otherwise like `start`. Ctrl-C before the response aborts what the command has started by then.
    """
    name, args = command
    fields: Json = {"name": name, "args": args, "unattended": unattended, "patience_s": patience_s}
    answer = _submitted(connection, session, "run_command", fields, timeout_s=slash.COMMAND_S)
    return answer, slash.run_of(answer)


def _submitted(connection: Connection, session: str, kind: str, fields: Json, *, timeout_s: float) -> Json:
    request = {**fields, "session": session, "request_id": os.urandom(16).hex()}
    try:
        return connection.call(kind, request, timeout_s=timeout_s)
    except InterruptedBySignal as interruption:
        if interruption.number == signal.SIGINT:
            _take_back(connection, session, kind, request)
        raise


def _take_back(connection: Connection, session: str, kind: str, request: Json) -> None:
    """Undo a request whose response was not awaited. Repeating it returns its response, and thereby the input's id."""
    # Withdrawn rather than aborted if possible, because it may be queued behind the run of another client.
    try:
        run = slash.run_of(connection.call(kind, request, timeout_s=ANSWER_S))
        if run is None or _withdraw(connection, session, run):
            return
    except ClientError:
        if kind != "prompt":  # perhaps an extension is still busy with it; what runs is then another client's
            return
    connection.call("abort", session=session, timeout_s=ABORT_S)


def follow(
    connection: Connection, session: str, run: Run, show: Show, *, frames: Iterable[tuple[bytes, Json]] | None = None
) -> int:
    """Show a run to its end and return 0; on Ctrl-C abort it, show its end and return `INTERRUPTED`.

    The connection's `Watch` raises for other signals and a lost output, which do not affect the run. `frames` is the
    source of events for callers that wait for other things as well; None: `connection.lines()`.
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
        return  # Ctrl-C again, or the daemon does not respond


def _withdraw(connection: Connection, session: str, run: Run) -> bool:
    """Withdraw an input that has not started: `abort` would end the run of another client."""
    if run.started or run.run_id is not None:
        return False
    try:
        connection.call("queue.withdraw", session=session, input=run.input_id, timeout_s=ABORT_S)
    except CallError:
        return False  # it has just started
    return True
