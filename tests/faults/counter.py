"""An extension that counts, in memory: `python counter.py [NAME]`. Its tool and its command `count` say PID and number.

    /count flood          answers, and writes a great deal
    /count half PATH      answers, and writes most of a line; the next thing that it says comes after its end. Opens the
                          named pipe PATH when somebody has read all of that but what fits into a pipe
    /count orphan SOCKET PATH
                          answers, and has a process with no parent and a session of its own say to the named pipe PATH what
                          the daemon at SOCKET answers when it wants to stop it
    tool wait             answers when somebody has opened and closed the named pipe `path`, and opens `path`.done then

It ends when it is greeted twice. Standard library only, so that it starts fast.
"""

import json
import os
import subprocess
import sys
import threading

FLOOD_LINES = 3000

HALF_BYTES = 300_000
"""Of a line; a pipe holds 64 KiB."""

number = 0
rest = b""
"""Of a line that was begun."""


def say(**frame: object) -> None:
    """Write a frame."""
    write(json.dumps(frame).encode() + b"\n")


def write(data: bytes) -> None:
    """Write bytes."""
    view = memoryview(data)
    while view:
        view = view[os.write(1, view) :]


def count() -> str:
    """The next number."""
    global number  # noqa: PLW0603  (what is to be kept)
    number += 1
    return f"{os.getpid()} {number}"


def answer(frame: dict[str, object]) -> None:
    """Answer a tool call."""
    say(type="tool_result", id=frame["id"], content=[{"type": "text", "text": count()}])


def later(frame: dict[str, object], path: str) -> None:
    """Answer when somebody has opened and closed the pipe."""
    with open(path, "rb") as gate:  # noqa: PTH123
        gate.read()
    answer(frame)
    with open(f"{path}.done", "wb"):  # noqa: PTH123
        return


def flood() -> None:
    """Write a great deal."""
    for _ in range(FLOOD_LINES):
        say(type="notify", level="info", message="x" * 200)


def half(path: str) -> None:
    """Write most of a line."""
    global rest  # noqa: PLW0603
    line = json.dumps({"type": "notify", "level": "info", "message": "x" * HALF_BYTES}).encode() + b"\n"
    write(line[:-10])
    rest = line[-10:]
    with open(path, "wb"):  # noqa: PTH123
        return


ORPHAN = """
import os, socket, sys
if os.fork() == 0:
    os.setsid()
    above = os.getpid()
    if os.fork() == 0:
        while os.getppid() == above:
            pass
        daemon = socket.socket(socket.AF_UNIX)
        daemon.connect(sys.argv[1])
        daemon.sendall(b'{"id":1,"type":"daemon.shutdown"}\\n')
        with open(sys.argv[2], "wb") as said:
            said.write(daemon.makefile("rb").readline())
"""


def orphan(address: str, path: str) -> None:
    """Start a process that wants to be forgotten."""
    subprocess.run([sys.executable, "-I", "-S", "-c", ORPHAN, address, path], check=True)


def command(frame: dict[str, object]) -> None:
    """Carry out `/count`."""
    global rest  # noqa: PLW0603
    write(rest)
    rest = b""
    say(type="command_response", id=frame["id"], action="display", display=count())
    what, _, path = str(frame["args"]).partition(" ")
    if what == "flood":
        flood()
    elif what == "half":
        half(path)
    elif what == "orphan":
        orphan(*path.split(" "))


def main() -> None:
    """Talk."""
    is_greeted = False
    name = sys.argv[1] if len(sys.argv) > 1 else "counter"
    say(type="hello", name=name, capabilities=["ready"])
    for tool in ("count", "wait"):
        say(type="register_tool", name=tool, description="counts", schema={})
    say(type="register_command", name="count", description="counts")
    say(type="ready")
    for line in sys.stdin:
        frame = json.loads(line)
        if frame["type"] == "shutdown" or (frame["type"] == "hello_ack" and is_greeted):
            return
        is_greeted = True
        if frame["type"] == "command_invoked":
            command(frame)
        elif frame["type"] == "tool_call" and frame["name"] == "wait":
            threading.Thread(target=later, args=(frame, frame["args"]["path"]), daemon=True).start()
        elif frame["type"] == "tool_call":
            answer(frame)


if __name__ == "__main__":
    main()
