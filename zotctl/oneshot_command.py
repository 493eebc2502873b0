"""Slash commands of `zot -p` and `zot --json`, which have no chat to show them in.

/fix 42   ->  starts a run                  the caller follows it
          ->  says something, or nothing    the text is the output
          ->  needs a chat                  a sentence says what to use instead
"""

import sys
from contextlib import suppress

from zotctl import output
from zotd.client.blocking import Connection, Json
from zotd.client.errors import CallError, ClientError, NoAnswerError
from zotd.client.fields import children, text
from zotd.client.running import Show, start_command
from zotd.client.runs import Run
from zotd.client.table import table
from zotd.sanitize import harmless

HELP = "help"
"""The one command of chats that can be carried out here."""

INSTEAD = {
    "approvals": "run: zotctl approvals",
    "copy": "",
    "detach": "",
    "diff": "run: zotctl checkpoints diff",
    "exit": "",
    "export": "run: zotctl export",
    "ext": "run: zotctl ext list",
    "fallback": "use --fallback MODELS",
    "find": "run: zotctl search",
    "fork": "run: zotctl fork",
    "jump": "",
    "keys": "",
    "login": "run: zotctl login",
    "logout": "run: zotctl logout",
    "mode": "use --mode MODE",
    "model": "use --model NAME, or run: zot --list-models",
    "new": "without -c and --session a new session is started anyway",
    "queue": "run: zotctl send",
    "quit": "",
    "reasoning": "use --reasoning LEVEL",
    "rename": "run: zotctl rename",
    "retry": "run: zotctl retry",
    "rewind": "run: zotctl rewind",
    "sessions": "run: zotctl sessions",
    "settings": "run: zotctl config show",
    "skills": "",
    "status": "run: zotctl sessions",
    "steer": "run: zotctl send --steer",
    "theme": "",
    "thinking": "",
    "tree": "run: zotctl tree",
    "usage": "run: zotctl usage",
    "who": "",
}
"""Commands that the chats carry out themselves, and what does the same without one; empty: nothing."""


def begin(
    connection: Connection,
    session: Json,
    command: tuple[str, str],
    *,
    unattended: str | None,
    patience_s: float | None,
    show: Show,
    as_json: bool,
) -> Run | str:
    """Run a slash command in an attached session; return the run that it starts, or else the text to print.

    `show` gets what was told on the way. With `as_json` the response is printed, and no text is returned.

    Raises:
        ClientError: there is no such command, it failed, or it needs a chat.
    """
    key = text(session, "id")
    try:
        answer, run = start_command(connection, key, command, unattended=unattended, patience_s=patience_s)
    except CallError as error:
        if error.code != "not_found":
            raise
        if command[0].casefold() != HELP:
            raise ClientError(_missing(command[0], error.sentence)) from error
        return _help(connection, key, as_json=as_json)
    if run is not None:
        return run
    _show_notes(connection, key, show, as_json=as_json)
    if as_json:
        _print_response("run_command", answer)
    if answer.get("action") == "open_panel":
        raise ClientError(_needs_terminal(session, command[0], text(answer, "extension")))
    return "" if as_json else text(answer, "text")


def note_of(event: Json) -> str:
    """Return what an extension has told (`ext_notify`), with its name in front."""
    extension, words = text(event, "extension"), text(event, "message")
    return words if words.startswith(f"{extension} ") else f"{extension}: {words}"


def _show_notes(connection: Connection, session: str, show: Show, *, as_json: bool) -> None:
    """Show what was told before the response. All of it: it may be the only result of the command."""
    with suppress(NoAnswerError):  # no more events
        for line, event in connection.lines(0):
            if event.get("session") != session or event.get("type") not in {"ext_notify", "notice"}:
                continue
            if as_json or event.get("type") == "notice" or event.get("level") in {"warn", "error"}:
                show(line, event)
            else:
                sys.stderr.write(f"zot: {harmless(note_of(event))}\n")


def _help(connection: Connection, session: str, *, as_json: bool) -> str:
    found = connection.call("complete", session=session, kind="command", text="")
    if as_json:
        _print_response("complete", found)
        return ""
    rows = [
        [f"/{text(one, 'text')} {text(one, 'hint')}".rstrip(), text(one, "detail"), text(one, "source")]
        for one in children(found, "found")
    ]
    return "\n".join(table(rows))


def _print_response(command: str, data: Json) -> None:
    """Print a response as `zot rpc` would, except for its id."""
    output.print_json({"type": "response", "command": command, "success": True, "data": data})


def _missing(name: str, sentence: str) -> str:
    instead = INSTEAD.get(name.casefold())
    if instead is None:
        return f"{sentence}; to send it as a prompt, begin it with two slashes"
    return f"/{name} works only in a chat" + (f"; {instead}" if instead else "")


def _needs_terminal(session: Json, name: str, extension: str) -> str:
    sentence = f"/{name} opened a panel of {extension}, which needs a terminal"
    return sentence if session.get("ephemeral") is True else f"{sentence}: zot --session {text(session, 'id')}"
