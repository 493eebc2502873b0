"""An extension that misbehaves as its arguments say: `python hostile.py silent NAME`. The table is `zotd.testing.misbehaviours`.

Standard library only, so that it starts fast. What it does about everything else is right: each behaviour is a polite
extension with one fault.
"""

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator

Frame = dict[str, object]


def say(frame: Frame) -> None:
    """Write a frame."""
    write(json.dumps(frame).encode() + b"\n")


def write(data: bytes) -> None:
    """Write bytes; a reader that went away ends us, as it ends any program."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def name() -> str:
    """What this extension, its tool and its command are called."""
    return sys.argv[-1]


def hello(**fields: object) -> None:
    """Begin as one should, with a tool, a command and a subscription; `ready` is not said."""
    say({"type": "hello", "name": name(), **fields})
    say({"type": "register_tool", "name": name(), "description": "echo", "schema": {}})
    say({"type": "register_command", "name": name(), "description": "echo"})
    say({"type": "subscribe", "events": ["turn_start"]})


def greet(**fields: object) -> None:
    """Begin as one should, and be ready."""
    hello(**fields)
    say({"type": "ready"})


def frames() -> Iterator[Frame]:
    """What the host says after `hello_ack`, until it closes our stdin or tells us to leave."""
    for line in sys.stdin:
        frame = json.loads(line)
        if frame["type"] == "shutdown":
            say({"type": "shutdown_ack"})
            return
        if frame["type"] != "hello_ack":
            yield frame


def result(frame: Frame, **fields: object) -> Frame:
    """The right answer to a tool call, with other fields."""
    text = json.dumps(frame.get("args"))
    return {"type": "tool_result", "id": frame["id"], "content": [{"type": "text", "text": text}], **fields}


def answer(frame: Frame) -> None:
    """Answer as one should."""
    match frame["type"]:
        case "tool_call":
            say(result(frame))
        case "command_invoked":
            say({"type": "command_response", "id": frame["id"], "action": "display", "display": frame["args"]})
        case _:
            say({"type": "event_intercept_response", "id": frame["id"]})


def serve(on_call: Callable[[Frame], None] = answer) -> None:
    """Be polite from here on, but answer calls like this."""
    for frame in frames():
        if frame["type"] in {"tool_call", "command_invoked", "event_intercept"}:
            on_call(frame)


def hang() -> None:
    """Do nothing and read nothing until the host closes our stdin."""
    end = select.poll()
    end.register(0, 0)  # of interest to nobody but poll, which tells the end of a pipe in any case
    end.poll()


# --- the beginning --------------------------------------------------------------------------------------------


def good() -> None:
    """No fault at all."""
    greet()
    serve()


BEGINNINGS: dict[str, Frame] = {
    "registers first": {"type": "register_tool", "name": "x", "schema": {}},
    "nameless": {"type": "hello", "name": ""},
    "no name": {"type": "hello", "version": "1"},
    "name is a number": {"type": "hello", "name": 7},
    "unknown first": {"type": "teleport"},
}
"""Behaviours that are a bad first frame and then silence."""


def silent() -> None:
    """Says nothing."""
    hang()


def another_name() -> None:
    """Calls itself something else than its manifest does."""
    say({"type": "hello", "name": "impostor"})
    greet()
    serve()


def noise() -> None:
    """Prints before, between and after its frames."""
    write(b"Debugger listening on ws://127.0.0.1:9229\n\n[1, 2]\n")
    greet()
    write("caf\u00e9 \u2028\x85\x0b\x0c\n".encode() + b"\xff\xfe\n{\n")
    serve()


def never_ready() -> None:
    """Never says ready and never falls silent."""
    hello()

    def chatter() -> None:
        while True:
            time.sleep(0.1)
            say({"type": "clear_notes"})

    threading.Thread(target=chatter, daemon=True).start()
    serve()


def exits() -> None:
    """Ends at once, with an error."""
    sys.stderr.write("Traceback (most recent call last):\nModuleNotFoundError: No module named 'weather'\n")
    sys.exit(3)


def leaves() -> None:
    """Ends after its hello as if its work were done."""
    greet()


# --- crashes --------------------------------------------------------------------------------------------------


def segfaults() -> None:
    """Is killed by a signal when it is called."""
    greet()
    serve(lambda _: os.kill(os.getpid(), signal.SIGSEGV))


def dies_in_a_call() -> None:
    """Ends when it is called."""
    greet()

    def die(_: Frame) -> None:
        sys.stderr.write("out of luck\n")
        sys.stderr.flush()
        os._exit(5)

    serve(die)


def closes_stdout() -> None:
    """Closes its stdout and lives on."""
    greet()
    os.close(1)
    hang()


def closes_stdin() -> None:
    """Closes its stdin and lives on."""
    greet()
    os.close(0)
    time.sleep(1000)


def leaves_a_child() -> None:
    """Ends, and leaves a child behind that holds its pipes and ignores SIGTERM."""
    greet()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["sleep", "1000"])  # noqa: S607
    os._exit(0)


def stubborn() -> None:
    """Ignores shutdown, the end of its input and SIGTERM, and has a child that does."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    subprocess.Popen(["sleep", "1000"])  # noqa: S607
    greet()
    serve()
    time.sleep(1000)


# --- not reading, and saying too much -------------------------------------------------------------------------


def never_reads() -> None:
    """Does not read its stdin."""
    greet()
    hang()


def stops_itself() -> None:
    """Is stopped, like a program in a debugger."""
    greet()
    os.kill(os.getpid(), signal.SIGSTOP)


def floods() -> None:
    """Prints without pause."""
    greet()
    threading.Thread(target=serve, daemon=True).start()
    while True:
        write(b"yes\n" * 4096)


def floods_frames() -> None:
    """Sends notes without pause."""
    greet()
    threading.Thread(target=serve, daemon=True).start()
    line = json.dumps({"type": "notify", "message": "me, me, me"}).encode() + b"\n"
    while True:
        write(line * 1000)


def floods_stderr() -> None:
    """Logs without pause."""
    greet()
    threading.Thread(target=serve, daemon=True).start()
    while True:
        os.write(2, b"log " * 4096 + b"\n")


def endless_line() -> None:
    """Writes a line that never ends."""
    greet()
    while True:
        write(b"x" * 65536)


def registers_without_end() -> None:
    """Registers more tools than anybody could use."""
    hello()
    for number in range(5_000):
        say({"type": "register_tool", "name": f"t{number}", "schema": {}})
    say({"type": "ready"})
    serve()


# --- bad answers ----------------------------------------------------------------------------------------------


ANSWERS: dict[str, Callable[[Frame], Frame]] = {
    "answers too much": lambda frame: result(frame, content=[{"type": "text", "text": "x" * 5_000_000}]),
    "answers too much id last": lambda frame: {"type": "tool_result", "content": ["x" * 5_000_000], "id": frame["id"]},
    "answers somebody else": lambda frame: result(frame, id="somebody"),
    "answers with another type": lambda frame: {"type": "command_response", "id": frame["id"], "action": "noop"},
    "answers badly": lambda frame: result(frame, is_error="no"),
    "answers garbage": lambda frame: result(frame, content=[{"type": "hologram"}, 7, {"type": "text"}]),
    "answers nothing in particular": lambda frame: result(frame, content=None),
    "unknown action": lambda frame: {"type": "command_response", "id": frame["id"], "action": "explode"},
}
"""Behaviours that are a bad answer to every call."""


def answers_nothing() -> None:
    """Reads, but never answers."""
    greet()
    serve(lambda _: None)


def answers_twice() -> None:
    """Answers each call three times, and calls that there never were."""
    greet()

    def twice(frame: Frame) -> None:
        say({"type": "tool_result", "id": "1", "content": []})
        for _ in range(3):
            answer(frame)

    serve(twice)


def not_unicode() -> None:
    """Answers with bytes that are no UTF-8 and with half a surrogate pair."""
    greet()

    def mojibake(frame: Frame) -> None:
        line = json.dumps(result(frame, content=[{"type": "text", "text": "caf# \ud83d"}])).encode()
        write(line.replace(b"#", b"\xe9") + b"\n")

    serve(mojibake)


def bad_frames() -> None:
    """Sends frames that are unknown, incomplete, of the wrong types, and too deep."""
    hello()
    for line in (
        *[b'{"type":"teleport"}', b'{"type":"register_tool"}', b'{"type":"notify","message":7}', b"{}", b"null"],
        *[b'{"type":"submit"}', b'{"type":"tool_result","id":{}}', b'{"type":"subscribe","events":[1]}'],
        *[b'{"type":"notify","message":NaN}', b"[" * 100_000, b'{"a":' * 50_000],
    ):
        write(line + b"\n")
    say({"type": "ready"})
    serve()


def bad_tools() -> None:
    """Registers tools that no vendor would take, beside a good one."""
    hello()
    for tool in (
        {"name": "two words"},
        {"name": "t1", "schema": "a city"},
        {"name": "t2", "schema": {"type": "string"}},
        {"name": "t3", "schema": {"properties": {"city": 7}}},
        {"name": "t4", "exposure": "secret"},
        {"name": "bash"},
    ):
        say({"type": "register_tool", "schema": {}, **tool})
    say({"type": "ready"})
    serve()


def repeats_itself() -> None:
    """Says hello and ready again and again, under other names."""
    greet()
    for _ in range(200):
        say({"type": "hello", "name": "somebody"})
        say({"type": "ready"})
        say({"type": "unregister", "kind": "tool", "name": "nothing"})
    serve()


# --- guards ---------------------------------------------------------------------------------------------------


def deaf_guard() -> None:
    """Intercepts tool calls and never answers."""
    hello()
    say({"type": "subscribe", "intercept": ["tool_call"]})
    say({"type": "ready"})
    serve(lambda _: None)


def mad_guard() -> None:
    """Intercepts tool calls and answers nonsense."""
    hello()
    say({"type": "subscribe", "intercept": ["tool_call", "world_peace"]})
    say({"type": "ready"})
    serve(
        lambda frame: say(
            {"type": "event_intercept_response", "id": frame["id"], "modified_args": ["rm"], "replace_text": None}
        )
    )


def guard_that_dies() -> None:
    """Intercepts tool calls and ends when it is asked."""
    hello()
    say({"type": "subscribe", "intercept": ["tool_call"]})
    say({"type": "ready"})
    serve(lambda _: os._exit(9))


def behave(how: str) -> None:
    """Be the extension of this id in the table."""
    if how in BEGINNINGS:
        say(BEGINNINGS[how])
        hang()
    elif how in ANSWERS:
        greet()
        serve(lambda frame: say(ANSWERS[how](frame)))
    else:
        globals()[how.replace(" ", "_")]()


if __name__ == "__main__":
    behave(sys.argv[1])
