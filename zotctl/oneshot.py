"""One-shot modes of `zot`: `-p` prints the answer, `--json` every event, `--list-models` the models.

The run belongs to the daemon. Ctrl-C aborts it. After SIGTERM, a lost terminal or a closed output it continues, and
standard error names its session. Imports neither asyncio nor msgspec, to start quickly.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from signal import SIGINT

from zotctl import link, oneshot_command, output
from zotd.client import model_switch
from zotd.client.blocking import FRAME_LIMIT, Connection, Json
from zotd.client.errors import CallError, ClientError, NotTextError
from zotd.client.fields import amount, children, number, text
from zotd.client.interrupts import InterruptedBySignal, OutputLostError, Watch
from zotd.client.options import open_session, parser
from zotd.client.outcome import Outcome
from zotd.client.running import INTERRUPTED, Show, follow, go_on, start
from zotd.client.runs import Run
from zotd.client.yolo_warning import warn_of_yolo
from zotd.sanitize import harmless, json_line, one_line
from zotd.wire import slash_lines

MAX_PIPED = 4 * FRAME_LIMIT
"""Most bytes read from standard input: the longest line that the daemon accepts."""

ATTENDED_S = 60.0
"""Seconds that a run keeps retrying a failing model if the command was started on a terminal."""

Entered = str | tuple[str, str]
"""A prompt, or name and arguments of a slash command."""

CHATTER = frozenset({"heartbeat", "presence", "attention", "replay_complete", "thinking_delta", "tool_start"})
"""Events that `--json` leaves out, because `zot rpc` of the original zot does not have them either."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `zot` with `argv` (default: `sys.argv`) and return the exit code: 0, 1, 2 for bad usage, 130 after Ctrl-C."""
    args = parser().parse_args(argv)
    try:
        code = _carry_out(args)
        sys.stdout.flush()
    except ClientError as error:
        return failed(str(error), as_json=args.json)
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        return output.lost("zot", error)
    return code


def _carry_out(args: argparse.Namespace) -> int:
    if args.list_models:
        return _list_models(args.provider, every=args.all, as_json=args.json)
    return _run(args, entered(args.prompt, needed=not args.go_on))


def entered(words: list[str], *, needed: bool) -> Entered:
    """Join the arguments and piped input; exits with 2 if both are empty and a prompt is needed."""
    argument = " ".join(words)
    try:
        argument.encode()
    except UnicodeEncodeError as error:  # fail before a session is created
        raise NotTextError("the prompt", argument) from error
    command = slash_lines.parsed(argument)
    if command is not None:
        name, typed = command
        return name, _joined(typed, _piped())
    prompt = _joined(_piped(), slash_lines.unescaped(argument))
    if needed and not prompt:
        sys.stderr.write("zot: no prompt; pass one as an argument or on standard input\n")
        raise SystemExit(2)
    return prompt


def _joined(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part.strip())


def _piped() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    with output.progress("reading the prompt from standard input"):
        data = sys.stdin.buffer.read(MAX_PIPED + 1)
    if len(data) > MAX_PIPED:
        raise ClientError("standard input is longer than 16 MiB; give the agent a file to read instead")
    return data.decode(errors="replace").rstrip("\n")


def _run(args: argparse.Namespace, entered: Entered) -> int:
    watch = Watch(sys.stdout.fileno())
    with link.connect("zot", watch.wait) as connection:
        try:
            session = open_session(connection, args, os.environ)
        except CallError as error:
            return failed(error.sentence, as_json=args.json, code=2 if error.code == "bad_request" else 1)
        warn_of_yolo(session, is_asked_for=args.mode == "yolo", env=os.environ)
        try:
            with watch:  # from here on a signal must not lose the run
                code, outcome = _follow(connection, session, args, entered)
        except (InterruptedBySignal, BrokenPipeError, OutputLostError) as reason:
            return _leave(session, reason)
    if code:
        return code
    if outcome.failure is not None:
        return failed(outcome.failure, as_json=args.json)
    if not args.json and (outcome.text or isinstance(entered, str)):
        output.print_text(outcome.text)
    return 0


def _follow(connection: Connection, session: Json, args: argparse.Namespace, entered: Entered) -> tuple[int, Outcome]:
    """Start the requested runs and print their output.

    With `--continue`, an interrupted run is resumed before a prompt. Not before a command, which may be about that run.
    """
    name = text(session, "id")
    runs: list[Callable[[Show], Run | str]] = []
    if args.go_on and isinstance(entered, str) and (session.get("state") == "held" or not entered):
        runs.append(lambda _: go_on(connection, name))
    # No person can answer an approval here, so the run must not wait for one unless --wait says so.
    unattended = "park" if args.wait else "deny"
    # A person at a terminal wants an early error; a script or cron job can wait for hours.
    patience_s = ATTENDED_S if sys.stderr.isatty() else None
    if isinstance(entered, tuple):
        begin_command = partial(oneshot_command.begin, connection, session, entered, as_json=args.json)
        runs.append(lambda show: begin_command(unattended=unattended, patience_s=patience_s, show=show))
    elif entered:
        runs.append(lambda _: start(connection, name, entered, unattended=unattended, patience_s=patience_s))
    code, outcome = 0, Outcome()
    for begin in runs:
        outcome = Outcome()
        show = _json_printer(outcome) if args.json else _notice_printer(outcome)
        begun = begin(show)
        if isinstance(begun, str):
            outcome.text = begun
            continue
        code = follow(connection, name, begun, show)
        if code or outcome.failure is not None:
            break
    return code, outcome


def _leave(session: Json, reason: Exception) -> int:
    """Say how to return to the run; Ctrl-C has already aborted it."""
    output.forget_stdout()
    if isinstance(reason, InterruptedBySignal) and reason.number == SIGINT:
        return INTERRUPTED
    name = text(session, "id")
    if session.get("ephemeral") is True:
        sys.stderr.write("zot: the run was stopped; --no-session keeps nothing\n")
    else:
        sentence = f"zot: the run continues in session {name}; to return to it, run: zot --session {name}"
        sys.stderr.write(f"{one_line(sentence)}\n")
    return 1


def _json_printer(outcome: Outcome) -> Show:
    to_terminal = sys.stdout.isatty()

    def show(line: bytes, event: Json) -> None:
        outcome.see(event)
        if event.get("type") not in CHATTER:
            shown = json_line(line.decode()).encode() if to_terminal else line
            sys.stdout.buffer.write(shown + b"\n")
            sys.stdout.buffer.flush()

    return show


def _notice_printer(outcome: Outcome) -> Show:
    """Print each warning once, to standard error: standard output is for the answer."""
    told: set[str] = set()

    def show(_: bytes, event: Json) -> None:
        outcome.see(event)
        words = _warning(event)
        # The first message about a crashed extension is longer and begins with the text of the later ones.
        if words and not any(one.startswith(words) for one in told):
            told.add(words)
            sys.stderr.write(f"zot: {harmless(words)}\n")
        if event.get("type") == "retry":
            _tell_retry(event)

    return show


def _tell_retry(event: Json) -> None:
    """Report attempts 1, 2, 4, 8, …: an outage of hours has hundreds."""
    failures = number(event, "attempt")
    if failures & (failures - 1) == 0:
        sentence = f"zot: {text(event, 'reason')}; retrying in {amount(event, 'delay_s'):.0f} s"
        sys.stderr.write(f"{one_line(sentence)}\n")


def _warning(event: Json) -> str:
    """Return the text of a notice, a change of the model or an extension's warning or error; "" for other events."""
    if event.get("type") == "notice":
        return text(event, "text")
    if event.get("type") == "model_switched":
        model = f"{text(event, 'provider')}/{text(event, 'model')}"
        return model_switch.sentence(model, own=event.get("own") is True, reason=text(event, "reason"))
    if event.get("type") != "ext_notify" or event.get("level") not in {"warn", "error"}:
        return ""
    return oneshot_command.note_of(event)


def failed(sentence: str, *, as_json: bool, code: int = 1) -> int:
    """Say why there is no answer, with `--json` also as an object on standard output; return the exit code."""
    sys.stderr.write(f"zot: {harmless(sentence)}\n")
    if as_json:
        try:
            print(json.dumps({"type": "error", "message": sentence}), flush=True)
        except BrokenPipeError:
            output.forget_stdout()
    return code


def _list_models(provider: str | None, *, every: bool, as_json: bool) -> int:
    with link.connect("zot") as connection:
        models = children(connection.call("get_models", all=True, current=not every), "models")
    if provider is not None:
        known = {text(model, "provider"): None for model in models}
        if provider not in known:
            raise ClientError(f'no models of provider "{provider}"; available providers: {", ".join(known)}')
        models = [model for model in models if text(model, "provider") == provider]
    if as_json:
        output.print_json({"v": 1, "models": models})
        return 0
    rows = [
        [text(model, "provider"), text(model, "id"), str(number(model, "context_window") or ""), _notes(model)]
        for model in models
    ]
    output.print_table(["PROVIDER", "MODEL", "CONTEXT", ""], rows)
    if not every:
        sys.stderr.write("superseded models are left out; --all lists them\n")
    return 0


def _notes(model: Json) -> str:
    notes = [
        "no key" if model.get("ready") is False else "",
        "few-shot" if model.get("few_shot") is True else "",
        "superseded" if model.get("superseded") is True else "",
    ]
    return ", ".join(note for note in notes if note)


if __name__ == "__main__":
    sys.exit(main())
