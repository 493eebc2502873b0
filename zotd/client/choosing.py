"""Selects stored sessions for command line programs, over a `blocking.Connection`."""

import sys
from collections.abc import Iterator
from itertools import islice

from zotd.client.blocking import Connection, Json
from zotd.client.errors import CallError, ClientError
from zotd.client.fields import amount, child, children, maybe_text, text
from zotd.sanitize import one_line
from zotd.template import foreground

PAGE = 100
"""Number of sessions requested at a time."""

OFFERED = 20
"""Number of sessions that `choose` offers; as many as fit on a screen."""

_NONE = "there is no session yet; `zot` starts one"


def sessions(
    connection: Connection,
    cwd: str | None = None,
    state: str | None = None,
    *,
    subagents: bool = False,
    user: str | None = None,
) -> Iterator[Json]:
    """Yield sessions as in `session.list`, newest first, page by page; optionally of one directory, state or user."""
    wanted: dict[str, object] = {"limit": PAGE, "cwd": cwd, "state": state, "subagents": subagents, "user": user}
    cursor: str | None = None
    while True:
        page = connection.call("session.list", wanted, cursor=cursor)
        yield from children(page, "sessions")
        cursor = maybe_text(page, "cursor")
        if cursor is None:
            return


def stored(connection: Connection, cwd: str | None = None) -> Iterator[Json]:
    """Like `sessions`, but without ephemeral ones."""
    return (session for session in sessions(connection, cwd) if session.get("ephemeral") is not True)


def state(session: Json) -> str:
    """Return the state of a session for a list, or something more informative.

    `failed` if it is idle after a failed run; the reason and the end of the pause if a run waits for its model; the
    machine and the home of another daemon that has it.
    """
    if daemon := text(session, "daemon"):
        return f"{text(session, 'state')} at {daemon}"
    waiting = child(session, "waiting")
    if waiting:
        next_s, brief = amount(waiting, "next_s"), text(waiting, "brief")
        return f"waiting for the model, next try in {next_s:.0f} s, {brief}"
    return "failed" if text(session, "state") == "idle" and session.get("failed") is True else text(session, "state")


def newest(connection: Connection, cwd: str | None = None) -> Json:
    """Return the most recently used stored session, optionally of one directory.

    Raises:
        ClientError: there is none.
    """
    for session in stored(connection, cwd):
        return session
    raise ClientError(_NONE if cwd is None else f"there is no session in {cwd} yet; `zot` starts one")


def find(connection: Connection, word: str) -> Json:
    """Return the session with that id, or else the newest one with that name.

    Raises:
        ClientError: there is none.
    """
    if word.startswith("s_"):
        try:
            return connection.call("session.get", session=word)
        except CallError as error:
            if error.code != "not_found":
                raise
    for session in sessions(connection):
        if text(session, "name") == word:
            return session
    raise ClientError(f"there is no session {word}; `zotctl sessions` lists them")


def choose(connection: Connection, cwd: str | None) -> Json:
    """Let the user pick a session, optionally of directory `cwd`, from a numbered list on the terminal.

    Raises:
        ClientError: there is no session or no terminal, or the user made no choice.
    """
    offered = list(islice(stored(connection, cwd), OFFERED))
    if not offered:
        raise ClientError(_NONE if cwd is None else f"there is no session in {cwd} yet; `zot` starts one")
    for number, session in enumerate(offered, 1):
        row = f"{number:3}  {text(session, 'updated')[:16]}  {text(session, 'name') or text(session, 'id')}"
        sys.stderr.write(f"{one_line(row)}\n")
    sys.stderr.write("session number: ")
    sys.stderr.flush()
    answer = _terminal_line()
    if not answer.isdecimal() or not 1 <= int(answer) <= len(offered):
        raise ClientError("no session was chosen")
    return offered[int(answer) - 1]


def _terminal_line() -> str:
    # Read from the terminal and not from standard input, which may contain the prompt.
    try:
        terminal = foreground.open_terminal()
    except OSError as error:
        raise ClientError("there is no terminal to choose a session on; use --resume ID") from error
    with open(terminal, encoding="utf-8", errors="replace") as file:
        return file.readline().strip()
