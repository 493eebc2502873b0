"""The extension's side of the protocol: receives frames, runs handlers, answers each request exactly once."""

from __future__ import annotations

import functools
import json
import os
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping

from .answers import EXPECTED_ERRORS, command_response, message_of, tool_error, tool_result, verdict
from .calls import Call, CommandCall, HostCalls
from .hints import is_coroutine_function
from .panel import OpenPanel, Panel
from .pipe import Frame, HostPipe, log, log_error, number, text
from .registry import Registry, with_values
from .values import Event, HelloAck
from .work import FrameOrigin, FunctionRun, Workers, origin

GRACE_S = 1.5
"""How long handlers may continue after `shutdown` or the end of stdin. The host waits 2 s for the exit."""


NEVER_HELD = frozenset({"hello_ack", "tool_result"})
"""Frames that are handled even during preparation, because they answer requests of the extension."""


class HostPeer:
    """One extension's conversation with the host, from `hello` to the end of the process."""

    def __init__(self, name: str, version: str) -> None:
        self.registry = Registry()
        self.pipe = HostPipe()
        self.calls = HostCalls(self.pipe)
        self.workers = Workers()
        self.hello = HelloAck()
        self.receivers: dict[str, Callable[[Frame], None]] = {
            "hello_ack": self._hello_ack,
            "tool_call": self._tool_call,
            "tool_cancel": self._tool_cancel,
            "tool_result": self.calls.answered,
            "command_invoked": self._command_invoked,
            "event": self._event,
            "event_intercept": self._event_intercept,
            "panel_key": self._panel_key,
            "panel_resize": self._panel_resize,
            "panel_close": self._panel_close,
        }
        self._name = name
        self._version = version
        self._running: dict[str, tuple[Call, FunctionRun]] = {}
        self._events: deque[FunctionRun] = deque()
        self._unknown: set[str] = set()
        self._held: list[Frame] | None = None
        self._lock = threading.Lock()

    def say(self, kind: str, session_id: str = "", **fields: object) -> None:
        """Send a frame about the given session, else about the one whose call is being answered, else about none."""
        session_id = session_id or origin.get().session_id
        self.pipe.send({"type": kind, **fields, **({"session_id": session_id} if session_id else {})})

    def show(self, panel: Panel) -> None:
        """Route the panel's keys to its handlers."""
        self.registry.panels[panel.id] = panel
        panel.opened(self.pipe)

    def run(self, prepare: Callable[[], object] | None = None) -> None:
        """Serve until the host ends it. Ends the process if a handler does not stop.

        `prepare` runs after `hello`. When it has returned, `ready` is sent and calls are handled.
        """
        capabilities = self.registry.capabilities()
        self.pipe.open({"type": "hello", "name": self._name, "version": self._version, "capabilities": capabilities})
        if prepare is not None:
            self._prepare(prepare)
        elif self.registry.on_hello is None:
            self.pipe.send({"type": "ready"})
        # Importing asyncio takes long, so it is done now rather than in the first call.
        if any(map(is_coroutine_function, self.registry.functions())):
            self.workers.expect_coroutines()
        shutdown = False
        try:
            for frame in self.pipe.frames():
                shutdown = frame.get("type") == "shutdown"
                if shutdown:
                    break
                self._receive(frame)
        except KeyboardInterrupt:
            pass  # run by hand in a terminal
        self._end(acknowledge=shutdown)

    def _end(self, *, acknowledge: bool) -> None:
        self.calls.abandon()  # their answers are no longer read
        clean = self.workers.close(GRACE_S)
        if acknowledge:
            self.pipe.send({"type": "shutdown_ack"})
        if not clean:
            # The interpreter would wait without limit for a thread that hangs in a handler.
            sys.stderr.flush()
            os._exit(0)

    def _receive(self, frame: Frame) -> None:
        kind = text(frame, "type")
        if kind not in self.receivers:
            # Logged once for each type, because a newer host may send it often.
            if kind not in self._unknown:
                self._unknown.add(kind)
                log(f"ignored a frame of the unknown type {kind!r} from the host")
            return
        with self._lock:
            if self._held is not None and kind not in NEVER_HELD:
                self._held.append(frame)
                return
        self._dispatch(frame)

    def _dispatch(self, frame: Frame) -> None:
        try:
            self.receivers[text(frame, "type")](frame)
        except Exception as error:  # noqa: BLE001  one malformed frame must not end the extension
            log_error(error)

    def _hello_ack(self, frame: Frame) -> None:
        self.hello = _hello_of(frame)
        handler = self.registry.on_hello
        if handler is not None:
            self._prepare(with_values(handler, self.hello))

    def _prepare(self, run: Callable[[], object]) -> None:
        """Run a function first. Requests wait until it has returned, because they may need what it sets up."""
        self._held = []
        self.workers.start(FunctionRun(run, self._prepared))

    def _prepared(self, _: object, error: BaseException | None) -> None:
        if error is not None:
            log_error(error)
        self.pipe.send({"type": "ready"})
        with self._lock:  # so that no newer frame overtakes the waiting ones
            held, self._held = self._held or [], None
            for frame in held:
                self._dispatch(frame)

    def _tool_call(self, frame: Frame) -> None:
        call = Call(frame, self.pipe.send)
        tool = self.registry.tools.get(text(frame, "name"))
        # The tool may have been unregistered while the call was on its way.
        if tool is None:
            self.pipe.send(tool_error(call.id, LookupError(f"this extension has no tool {text(frame, 'name')}")))
            return
        structured = "output_schema" in tool.frame
        try:
            run = tool.bind(frame.get("args", {}), call)
        except Exception as error:  # noqa: BLE001  not only ArgumentError: conversion runs the author's classes
            self._answer_tool(call.id, None, error, structured=structured)
            return

        def settled(value: object, error: BaseException | None) -> None:
            self._running.pop(call.id, None)
            self._answer_tool(call.id, value, error, structured=structured)

        about = FrameOrigin(call.session_id, call.id)
        job = FunctionRun(run, settled, about=about, lane=tool.lane, interruptible=not tool.takes_call)
        # Before the start: a fast call would otherwise end before it is registered, and stay registered.
        self._running[call.id] = call, job
        self.workers.start(job)

    def _answer_tool(self, call_id: str, value: object, error: BaseException | None, *, structured: bool) -> None:
        if error is None:
            try:
                self.pipe.send(tool_result(call_id, value, structured=structured))
                return
            except (TypeError, ValueError, RecursionError) as fault:
                error = fault  # not JSON, or longer than the host reads
        if not isinstance(error, EXPECTED_ERRORS):
            log_error(error)
        self.pipe.send(tool_error(call_id, error))

    def _tool_cancel(self, frame: Frame) -> None:
        running = self._running.get(text(frame, "id"))
        if running is not None:
            call, job = running
            call.cancelled = True
            job.cancel()

    def _command_invoked(self, frame: Frame) -> None:
        call_id, name = text(frame, "id"), text(frame, "name")
        call = CommandCall(*(text(frame, field) for field in CommandCall._fields))
        command = self.registry.commands.get(name)
        if command is None:
            # The command may have been unregistered while the call was on its way.
            error = LookupError(f"this extension has no command /{name}")
            self.pipe.send(command_response(call_id, None, error))
            return

        def settled(value: object, error: BaseException | None) -> None:
            if error is not None:
                log_error(error)
            if isinstance(value, OpenPanel):
                self.show(value.panel)  # first, because its keys may arrive at once
            self.pipe.send(command_response(call_id, value, error))

        run = command.bind(text(frame, "args"), call)
        self.workers.start(FunctionRun(run, settled, about=FrameOrigin(call.session_id, call_id)))

    def _event(self, frame: Frame) -> None:
        event = _event_of(frame)
        for handler in self.registry.handlers.get(event.name, ()):
            # One lane for all, so that handlers see events in the order in which they happened.
            self.workers.start(
                FunctionRun(
                    with_values(handler, event), _log_failure, about=FrameOrigin(event.session_id), lane=self._events
                )
            )

    def _event_intercept(self, frame: Frame) -> None:
        event = _event_of(frame)
        guard = self.registry.guards.get(event.name)

        def settled(value: object, error: BaseException | None) -> None:
            self.pipe.send(
                {
                    "type": "event_intercept_response",
                    "id": frame.get("id"),
                    **self._verdict(event.name, value, error),
                }
            )

        # Every question needs an answer, or the host would wait for its timeout.
        if guard is None:
            settled(None, None)
        else:
            self.workers.start(FunctionRun(with_values(guard, event), settled, about=FrameOrigin(event.session_id)))

    def _verdict(self, event: str, value: object, error: BaseException | None) -> Mapping[str, object]:
        if error is None:
            try:
                fields = verdict(event, value)
                # Tested here, where `on_failure` can still decide. The pipe could only raise.
                json.dumps(fields, allow_nan=False)
                return fields
            except (TypeError, ValueError) as fault:
                error = fault
        log_error(error)
        # A guard that raises has not decided. Answering at once spares the host its timeout.
        if _on_failure(self.hello.extension_dir).get(event) == "closed":
            return {"block": True, "reason": f"{self._name} could not decide: {message_of(error)}"}
        return {}

    def _panel_key(self, frame: Frame) -> None:
        panel = self.registry.panels.get(text(frame, "panel_id"))
        if panel is not None and panel.on_key is not None:
            run = with_values(panel.on_key, text(frame, "key"), text(frame, "text"))
            self.workers.start(FunctionRun(run, _log_failure, lane=panel.lane))

    def _panel_resize(self, frame: Frame) -> None:
        panel = self.registry.panels.get(text(frame, "panel_id"))
        if panel is not None and panel.on_resize is not None:
            run = functools.partial(panel.on_resize, number(frame, "width"), number(frame, "height"))
            self.workers.start(FunctionRun(run, _log_failure, lane=panel.lane))

    def _panel_close(self, frame: Frame) -> None:
        panel = self.registry.panels.pop(text(frame, "panel_id"), None)
        if panel is not None:
            panel.closed()
            if panel.on_close is not None:
                self.workers.start(FunctionRun(panel.on_close, _log_failure, lane=panel.lane))


def _log_failure(_: object, error: BaseException | None) -> None:
    if error is not None:
        log_error(error)


def _event_of(frame: Frame) -> Event:
    args = frame.get("tool_args")
    return Event(
        name=text(frame, "event"),
        session_id=text(frame, "session_id"),
        cwd=text(frame, "cwd"),
        step=number(frame, "step"),
        tool_id=text(frame, "tool_id"),
        tool_name=text(frame, "tool_name"),
        tool_args=args if isinstance(args, dict) else {},
        text=text(frame, "text"),
        stop=text(frame, "stop"),
        error=text(frame, "error"),
        system_prompt=text(frame, "system_prompt"),
        fields=frame,
        traceparent=text(frame, "traceparent"),
    )


def _hello_of(frame: Frame) -> HelloAck:
    features = frame.get("features")
    return HelloAck(
        provider=text(frame, "provider"),
        model=text(frame, "model"),
        cwd=text(frame, "cwd"),
        extension_dir=text(frame, "extension_dir"),
        data_dir=text(frame, "data_dir"),
        features=features if isinstance(features, list) else [],
        zot_version=text(frame, "zot_version"),
        protocol_version=number(frame, "protocol_version"),
    )


def _on_failure(extension_dir: str) -> Mapping[str, object]:
    """Read `on_failure` of the manifest, by event; empty if it cannot be read."""
    directory = extension_dir or os.path.dirname(os.path.abspath(sys.argv[0]))
    try:
        with open(os.path.join(directory, "extension.json"), "rb") as file:
            manifest = json.load(file)
    except (OSError, ValueError):
        return {}
    modes = manifest.get("on_failure") if isinstance(manifest, dict) else None
    return modes if isinstance(modes, dict) else {}
