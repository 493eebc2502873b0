"""The host's side of the extension protocol, for tests: starts one real extension process and talks to it.

    with ExtensionDriver(["./weather"], cwd=directory) as driver:
        driver.greet()
        assert driver.call_tool("weather", city="Berlin")["content"][0]["text"] == "Berlin: 16 °C, fog"

Every wait is bounded; an extension that does not end by itself is killed with its whole process group.
"""

import contextlib
import json
import os
import queue
import signal
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

Frame = dict[str, object]

ANSWER_TIMEOUT_S = 20.0
"""For one frame. Long beside what extensions take, short beside the minute that a test may last."""
END_TIMEOUT_S = 10.0
"""From `shutdown` to the end of the process; the daemon waits 2 s, on machines that are less loaded than those of tests."""

REGISTRATIONS = {
    "register_command",
    "register_tool",
    "register_channel",
    "subscribe",
    "unregister",
    "module_error",
}


class ExtensionDriver:  # noqa: PLR0904  one method for each turn of the conversation
    """One extension process. Not for use by several threads."""

    def __init__(self, argv: Sequence[str | Path], cwd: Path, env: Mapping[str, str] | None = None) -> None:
        """Start it; `env` is added to this process's environment."""
        # Appending: the process shares the offset, and `log` moves it.
        self._log = tempfile.TemporaryFile("a+b")  # noqa: SIM115  closed in __exit__
        self._process = subprocess.Popen(  # noqa: S603  the extension under test
            argv,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._unread: list[Frame] = []
        self._ids = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        with contextlib.suppress(ProcessLookupError):  # it has ended by itself, with all its children
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(END_TIMEOUT_S)
        with contextlib.suppress(BrokenPipeError):  # what it had not read yet
            self.close_stdin()
        self._reader.join(END_TIMEOUT_S)
        self._log.close()

    @property
    def pid(self) -> int:
        """Pid of the process."""
        return self._process.pid

    def send(self, kind: str, **fields: object) -> None:
        """Send a frame."""
        self.send_line(json.dumps({"type": kind, **fields}, ensure_ascii=False).encode())

    def send_line(self, line: bytes) -> None:
        """Send a line as it is; the line feed is added."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()

    def receive(self, timeout_s: float = ANSWER_TIMEOUT_S) -> Frame:
        """The next frame.

        Raises:
            TimeoutError: there is none.
            EOFError: the extension has closed its stdout.
        """
        return self._unread.pop(0) if self._unread else self._next(timeout_s)

    def expect(self, kind: str, **fields: object) -> Frame:
        """The next frame of this type with these fields; others before it stay for later."""
        wanted = {"type": kind, **fields}
        for position, frame in enumerate(self._unread):
            if frame.items() >= wanted.items():
                return self._unread.pop(position)
        while not (frame := self._next(ANSWER_TIMEOUT_S)).items() >= wanted.items():
            self._unread.append(frame)
        return frame

    def greet(self, **hello_ack: object) -> list[Frame]:
        """Shake hands; what the extension has registered, and complained about, before `ready`."""
        self.expect("hello")
        self.send("hello_ack", **{"protocol_version": 1, "zot_version": "test", "cwd": "/", **hello_ack})
        self.expect("ready")
        registrations = [frame for frame in self._unread if frame["type"] in REGISTRATIONS]
        self._unread = [frame for frame in self._unread if frame["type"] not in REGISTRATIONS]
        return registrations

    def request(self, kind: str, **fields: object) -> str:
        """Send a frame with a fresh id; gives the id."""
        self._ids += 1
        self.send(kind, id=str(self._ids), **fields)
        return str(self._ids)

    def call_tool(self, name: str, /, **args: object) -> Frame:
        """Call a tool; its `tool_result`."""
        return self.expect("tool_result", id=self.request("tool_call", name=name, args=args))

    def run_command(self, name: str, args: str = "", **fields: object) -> Frame:
        """Run a slash command; its `command_response`."""
        return self.expect("command_response", id=self.request("command_invoked", name=name, args=args, **fields))

    def intercept(self, event: str, **fields: object) -> Frame:
        """Ask a guard; its `event_intercept_response`."""
        return self.expect("event_intercept_response", id=self.request("event_intercept", event=event, **fields))

    def close_stdin(self) -> None:
        """What the extension sees when the host dies."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def end(self) -> int:
        """The exit code; waits for the process to end by itself.

        Raises:
            subprocess.TimeoutExpired: it does not.
        """
        return self._process.wait(END_TIMEOUT_S)

    def shut_down(self) -> int:
        """Say `shutdown` and close stdin; the exit code."""
        self.send("shutdown")
        self.close_stdin()
        return self.end()

    def rest(self) -> list[Frame]:
        """Everything up to the end of the extension's stdout."""
        frames, self._unread = self._unread, []
        try:
            while True:
                frames.append(self._next(ANSWER_TIMEOUT_S))
        except EOFError:
            return frames

    def log(self) -> str:
        """What it has written to stderr so far."""
        self._log.seek(0)
        return self._log.read().decode()

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            for line in lines:
                self._lines.put(line)
        self._lines.put(None)

    def _next(self, timeout_s: float) -> Frame:
        try:
            line = self._lines.get(timeout=timeout_s)
        except queue.Empty:
            raise TimeoutError(f"no frame within {timeout_s} s; unread: {self._unread}; log: {self.log()}") from None
        if line is None:
            self._lines.put(None)
            raise EOFError(f"the extension has closed its stdout; unread: {self._unread}; log: {self.log()}")
        frame = json.loads(line)
        assert isinstance(frame, dict), f"not a frame: {line!r}"
        return frame


def text_of(frame: Frame) -> str:
    """The text of a `tool_result`."""
    content = frame["content"]
    assert isinstance(content, list)
    return "".join(block["text"] for block in content if block["type"] == "text")
