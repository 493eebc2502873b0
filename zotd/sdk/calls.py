"""Calls in both directions: the call that a handler answers, and calls that an extension makes to the host."""

from __future__ import annotations

import itertools
import threading
from binascii import a2b_base64
from collections.abc import Callable, Generator, Mapping
from typing import NamedTuple

from .pipe import Frame, HostPipe, text
from .values import Image, Result
from .work import FrameOrigin


class CommandCall(NamedTuple):
    """The origin of a slash command. A command's handler gets it if it has a parameter `call`."""

    session_id: str = ""
    client_id: str = ""
    """The client in which it was typed."""
    cwd: str = ""


class Call:
    """One call of a tool. The handler gets it if it has a parameter `call`."""

    def __init__(self, frame: Frame, send: Callable[[Frame], None]) -> None:
        self.id = text(frame, "id")
        self.session_id = text(frame, "session_id")
        self.cwd = text(frame, "cwd")
        """Only set for an extension with `scope: daemon`; others find it in `HelloAck`."""
        self.operation_key = text(frame, "operation_key")
        """Stays the same if this call is repeated after a crash; a tool with `replay="idempotent"` uses it to recognise that."""
        self.reconcile = bool(frame.get("reconcile", False))
        """The host asks for the outcome of the operation instead of its execution."""
        self.traceparent = text(frame, "traceparent")
        """The call's span (W3C Trace Context), for spans of the extension's own; empty if the host makes no traces."""
        self.cancelled = False
        """The result is no longer needed. A coroutine without the parameter `call` is cancelled instead."""
        self._send = send

    def progress(self, text: str) -> None:
        """Show progress to the user. Thread-safe."""
        self._send({"type": "tool_progress", "id": self.id, "text": text})


class HostCall:
    """A tool that the host runs for the extension. `await` it in a coroutine, or call `result()` in a thread."""

    def __init__(self, cancel: Callable[[], None]) -> None:
        self.cancel = cancel
        """Ask the host to end the tool; it still answers."""
        self._done = threading.Event()
        self._lock = threading.Lock()
        self._result = Result()
        self._waiting: list[Callable[[], object]] = []

    def result(self, timeout_s: float | None = None) -> Result:
        """Wait for the result. Do not call it on the event loop, which it would block.

        Raises:
            TimeoutError: there is no result after `timeout_s`; the call continues.
        """
        if not self._done.wait(timeout_s):
            raise TimeoutError(f"the host's tool has not answered within {timeout_s} s")
        return self._result

    def finish(self, result: Result) -> None:
        """Set the result and wake up all waiting threads and coroutines. Called by the SDK."""
        with self._lock:
            self._result = result
            self._done.set()
            waiting, self._waiting = self._waiting, []
        for wake in waiting:
            wake()

    def __await__(self) -> Generator[object, None, Result]:
        import asyncio  # noqa: PLC0415  only for coroutines, so that other extensions start without it

        loop = asyncio.get_running_loop()
        answered = asyncio.Event()
        # The reading thread may finish the call at any moment; the lock prevents a lost wake-up.
        with self._lock:
            if not self._done.is_set():
                self._waiting.append(lambda: loop.call_soon_threadsafe(answered.set))
        if not self._done.is_set():
            try:
                yield from answered.wait().__await__()
            except asyncio.CancelledError:
                self.cancel()
                raise
        return self._result


class HostCalls:
    """Calls to the host that are waiting for an answer."""

    def __init__(self, pipe: HostPipe) -> None:
        self._pipe = pipe
        # next() on a count is atomic, so threads cannot get the same number.
        self._numbers = itertools.count(1)
        self._open: dict[str, HostCall] = {}

    def start(self, name: str, args: Mapping[str, object], about: FrameOrigin) -> HostCall:
        """Ask the host to run a tool, on behalf of the call in `about`."""
        call_id = f"call-{next(self._numbers)}"
        call = HostCall(lambda: self._pipe.send({"type": "call_tool_cancel", "id": call_id}))
        frame: Frame = {"type": "call_tool", "id": call_id, "name": name, "args": dict(args)}
        if about.call_id:
            frame["parent_id"] = about.call_id
        if about.session_id:
            frame["session_id"] = about.session_id
        # Before it is sent: the answer is read in another thread.
        self._open[call_id] = call
        self._pipe.send(frame)
        return call

    def answered(self, frame: Frame) -> None:
        """Finish the call that a `tool_result` of the host answers; an unexpected one is dropped."""
        call = self._open.pop(str(frame.get("id")), None)
        if call is not None:
            call.finish(_result(frame))

    def abandon(self) -> None:
        """Fail all waiting calls, because the host has gone."""
        # Not a plain loop: handlers in other threads may still start calls.
        while self._open:
            _, call = self._open.popitem()
            call.finish(Result("the host has gone", is_error=True))


def _result(frame: Frame) -> Result:
    texts, images = [], []
    content = frame.get("content")
    for block in content if isinstance(content, list) else []:
        if block.get("type") == "text":
            texts.append(str(block.get("text", "")))
        elif block.get("type") == "image":
            images.append(Image(a2b_base64(block.get("data", "")), str(block.get("mime_type", ""))))
    return Result(
        "\n".join(texts),
        images,
        structured=frame.get("structured_content"),
        is_error=bool(frame.get("is_error", False)),
        truncated=bool(frame.get("truncated", False)),
    )
