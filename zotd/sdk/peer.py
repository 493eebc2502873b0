"""The extension's side of the protocol: takes the host's frames, runs handlers, answers each request exactly once."""

from __future__ import annotations

import functools
import json
import os
import sys
from collections import deque
from collections.abc import Callable, Mapping
from typing import Optional

from .answers import EXPECTED_ERRORS, command_response, message_of, tool_error, tool_result, verdict
from .calls import Call, CommandCall, HostCalls
from .hints import is_coroutine_function
from .panel import OpenPanel, Panel
from .pipe import Frame, HostPipe, log, log_error
from .registry import Registry, with_value
from .values import Event, HelloAck
from .work import Job, Origin, Workers, origin

GRACE_S = 1.5
"""How long handlers may go on after `shutdown` or the end of stdin: the host waits 2 s for the process to exit."""


class Peer:
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
        self._running: dict[str, tuple[Call, Job]] = {}
        self._events: deque[Job] = deque()
        self._unknown: set[str] = set()

    def say(self, kind: str, session_id: str = "", **fields: object) -> None:
        """Send a frame about a session: the given one, else the one whose call is being answered here, else none."""
        session_id = session_id or origin.get().session_id
        self.pipe.send({"type": kind, **fields, **({"session_id": session_id} if session_id else {})})

    def show(self, panel: Panel) -> None:
        """Route the panel's keys to its handlers."""
        self.registry.panels[panel.id] = panel
        panel.opened(self.pipe)

    def run(self) -> None:
        """Speak the protocol until the host ends it. Ends the process if a handler would not stop."""
        capabilities = self.registry.capabilities()
        self.pipe.open({"type": "hello", "name": self._name, "version": self._version, "capabilities": capabilities})
        if self.registry.on_hello is None:
            self.pipe.send({"type": "ready"})
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
            pass  # driven by hand in a terminal
        self._end(acknowledge=shutdown)

    def _end(self, *, acknowledge: bool) -> None:
        if not acknowledge:
            self.calls.abandon()  # nobody is left to answer them
        clean = self.workers.close(GRACE_S)
        if acknowledge:
            self.pipe.send({"type": "shutdown_ack"})
        if not clean:
            # A thread that hangs in a handler must not hold up the interpreter's own, unbounded, end.
            sys.stderr.flush()
            os._exit(0)

    def _receive(self, frame: Frame) -> None:
        kind = str(frame.get("type"))
        receiver = self.receivers.get(kind)
        if receiver is None:
            if kind not in self._unknown:
                self._unknown.add(kind)
                log(f"ignored a frame of the unknown type {kind!r} from the host")
            return
        try:
            receiver(frame)
        except Exception as error:  # noqa: BLE001  one malformed frame must not end the extension
            log_error(error)

    def _hello_ack(self, frame: Frame) -> None:
        known = {name: value for name, value in frame.items() if name in HelloAck._fields}
        self.hello = HelloAck(**known)  # type: ignore[arg-type]  the host's own frame
        handler = self.registry.on_hello
        if handler is not None:
            # Calls that are already in the pipe wait: they may need what the handler sets up.
            self.workers.hold(Job(with_value(handler, self.hello), self._greeted))

    def _greeted(self, _: object, error: Optional[BaseException]) -> None:
        if error is not None:
            log_error(error)
        self.pipe.send({"type": "ready"})
        self.workers.release()

    def _tool_call(self, frame: Frame) -> None:
        call = Call(frame, self.pipe)
        tool = self.registry.tools.get(str(frame.get("name")))
        try:
            if tool is None:
                raise LookupError(f"this extension has no tool {frame.get('name')}")
            run = tool.bind(frame.get("args", {}), call)
        except (LookupError, ValueError) as error:
            self.pipe.send(tool_error(call.id, error))
            return

        def settled(value: object, error: Optional[BaseException]) -> None:
            self._running.pop(call.id, None)
            self._answer_tool(call.id, value, error, structured="output_schema" in tool.frame)

        about = Origin(call.session_id, call.id)
        job = Job(run, settled, about=about, lane=tool.lane, interruptible=not tool.takes_call)
        self._running[call.id] = call, job
        self.workers.start(job)

    def _answer_tool(self, call_id: str, value: object, error: Optional[BaseException], *, structured: bool) -> None:
        if error is None:
            try:
                self.pipe.send(tool_result(call_id, value, structured=structured))
                return
            except (TypeError, ValueError, RecursionError) as fault:
                error = fault  # not JSON, or more than the host reads
        if not isinstance(error, EXPECTED_ERRORS):
            log_error(error)
        self.pipe.send(tool_error(call_id, error))

    def _tool_cancel(self, frame: Frame) -> None:
        running = self._running.get(str(frame.get("id")))
        if running is not None:
            call, job = running
            call.cancelled = True
            job.cancel()

    def _command_invoked(self, frame: Frame) -> None:
        call_id, name = str(frame.get("id", "")), str(frame.get("name"))
        call = CommandCall(*(str(frame.get(field, "")) for field in CommandCall._fields))
        command = self.registry.commands.get(name)
        if command is None:
            error = LookupError(f"this extension has no command /{name}")
            self.pipe.send(command_response(call_id, None, error))
            return

        def settled(value: object, error: Optional[BaseException]) -> None:
            if error is not None:
                log_error(error)
            self.pipe.send(command_response(call_id, value, error))
            if isinstance(value, OpenPanel):
                self.show(value.panel)

        run = command.bind(str(frame.get("args", "")), call)
        self.workers.start(Job(run, settled, about=Origin(call.session_id)))

    def _event(self, frame: Frame) -> None:
        event = _event_of(frame)
        for handler in self.registry.handlers.get(event.name, ()):
            # One lane for all: events reach an extension in the order in which they happened.
            self.workers.start(
                Job(with_value(handler, event), _log_failure, about=Origin(event.session_id), lane=self._events)
            )

    def _event_intercept(self, frame: Frame) -> None:
        event = _event_of(frame)
        guard = self.registry.guards.get(event.name)

        def settled(value: object, error: Optional[BaseException]) -> None:
            self.pipe.send({
                "type": "event_intercept_response",
                "id": frame.get("id"),
                **self._verdict(event.name, value, error),
            })

        if guard is None:
            settled(None, None)
        else:
            self.workers.start(Job(with_value(guard, event), settled, about=Origin(event.session_id)))

    def _verdict(self, event: str, value: object, error: Optional[BaseException]) -> Mapping[str, object]:
        if error is None:
            try:
                fields = verdict(event, value)
                json.dumps(fields, allow_nan=False)
                return fields
            except (TypeError, ValueError) as fault:
                error = fault
        log_error(error)
        if _on_failure(self.hello.extension_dir).get(event) == "closed":
            return {"block": True, "reason": f"{self._name} could not decide: {message_of(error)}"}
        return {}

    def _panel_key(self, frame: Frame) -> None:
        panel = self.registry.panels.get(str(frame.get("panel_id")))
        if panel is not None and panel.on_key is not None:
            run = with_value(panel.on_key, str(frame.get("key", "")), str(frame.get("text", "")))
            self.workers.start(Job(run, _log_failure, lane=panel.lane))

    def _panel_resize(self, frame: Frame) -> None:
        panel = self.registry.panels.get(str(frame.get("panel_id")))
        if panel is not None and panel.on_resize is not None:
            run = functools.partial(panel.on_resize, frame["width"], frame["height"])  # type: ignore[arg-type]  the host's
            self.workers.start(Job(run, _log_failure, lane=panel.lane))

    def _panel_close(self, frame: Frame) -> None:
        panel = self.registry.panels.pop(str(frame.get("panel_id")), None)
        if panel is not None:
            panel.closed()
            if panel.on_close is not None:
                self.workers.start(Job(panel.on_close, _log_failure, lane=panel.lane))


def _log_failure(_: object, error: Optional[BaseException]) -> None:
    if error is not None:
        log_error(error)


def _event_of(frame: Frame) -> Event:
    known = {name: value for name, value in frame.items() if name in Event._fields}
    known.update(name=frame.get("event"), fields=frame)
    return Event(**known)  # type: ignore[arg-type]  the host's own frame


def _on_failure(extension_dir: str) -> Mapping[str, object]:
    """What the manifest says about guards that fail, by event; nothing if it cannot be read."""
    directory = extension_dir or os.path.dirname(os.path.abspath(sys.argv[0]))  # noqa: PTH100, PTH120  pathlib: 5 ms
    try:
        with open(os.path.join(directory, "extension.json"), "rb") as file:  # noqa: PTH118, PTH123  pathlib: 5 ms
            manifest = json.load(file)
    except (OSError, ValueError):
        return {}
    modes = manifest.get("on_failure") if isinstance(manifest, dict) else None
    return modes if isinstance(modes, dict) else {}
