"""`zot rpc --session ID`: a session of the daemon, driven through standard input and output (`docs/protocol.md`).

Adds the session's ID to each command from standard input, and removes it from responses and events. Runs belong to the
daemon and continue if this process is killed. Exits once standard input is closed and all requested runs have ended.
"""

import argparse
import hmac
import json
import os
import sys
from collections.abc import Mapping, Sequence

from zotctl import link
from zotd.client import place
from zotd.client.blocking import CALL_S, Json, LineSocket, WholeLines
from zotd.client.choosing import find
from zotd.client.errors import ClientError
from zotd.client.fields import child, maybe_text, text
from zotd.client.interrupts import InterruptedBySignal, OutputLostError, Watch
from zotd.client.options import environment
from zotd.sanitize import harmless

READ_BYTES = 256 * 1024

TOKEN = "ZOTCORE_RPC_TOKEN"  # noqa: S105  (the variable's name)

ATTACH = "zot rpc attaches"
"""ID of our own `attach` request; its response is not passed on."""


def main(argv: Sequence[str]) -> int:
    """Run `zot rpc` with these arguments and return the exit code."""
    parser = argparse.ArgumentParser(prog="zot rpc", description="Control a session over standard input and output.")
    parser.add_argument("--session", required=True, metavar="ID|NAME", help="session ID or name")
    parser.add_argument(
        "--trust", action="store_true", help="run the code that the working directory contains, like ZOT_TRUST=1"
    )
    args = parser.parse_args(argv)
    try:
        return _bridge(str(args.session), environment(args, os.environ))
    except ClientError as error:
        sys.stderr.write(f"zot: {harmless(str(error))}\n")
        return 1
    except OutputLostError:
        return 0
    except InterruptedBySignal as signal:
        return 128 + signal.number


def _bridge(word: str, env: Mapping[str, str] | None) -> int:
    with link.connect("zot rpc") as connection:
        session = text(find(connection, word), "id")
    wire = LineSocket(place.of(os.environ).open())
    bridge = FrameForwarder(wire, session, os.environ.get(TOKEN), env)
    with Watch(1) as watch:
        while not bridge.attached:
            bridge.from_daemon(wire.receive(CALL_S))
        while not bridge.finished:
            ready = watch.wait_any([wire.fileno(), *([0] if bridge.listening else [])])
            if wire.fileno() in ready:
                bridge.from_daemon(wire.receive())
            if 0 in ready:
                bridge.from_program(os.read(0, READ_BYTES))
    return 1 if bridge.refused else 0


class FrameForwarder:
    """Forwards frames, and counts the responses and runs that the program still waits for."""

    def __init__(self, wire: LineSocket, session: str, token: str | None, env: Mapping[str, str] | None) -> None:
        """Attach to the session.

        Args:
            wire: a connection to the daemon; stays the caller's.
            session: ID of the session.
            token: the first command must be a hello with this token; None: no token is required.
            env: environment of the session's tools from now on; None: unchanged.
        """
        self._wire = wire
        self._session = session
        self._token = token
        self._lines = WholeLines()
        self._unanswered = 0
        self._unfinished: set[str] = set()
        """IDs of inputs and runs that the program started."""
        self._model: Json = {}
        self.attached = False
        self.listening = True
        self.refused = False
        self._send({"type": "attach", "id": ATTACH, "limit": 1, "env": env})

    @property
    def finished(self) -> bool:
        """Whether the bridge has no more work."""
        return self.refused or not (self.listening or self._unanswered or self._unfinished)

    def from_program(self, data: bytes) -> None:
        """Forward commands to the daemon; empty data means end of input."""
        self.listening = bool(data)
        for line in self._lines.feed(data or b"\n").split(b"\n"):
            if line.strip() and not self.refused:
                self._command(line)

    def from_daemon(self, block: bytes) -> None:
        """Forward complete lines of responses and events to standard output."""
        for line in block.split(b"\n"):
            frame: Json = json.loads(line) if line else {}
            if frame.get("type") == "response":
                self._response(frame)
            elif frame.get("session") == self._session:
                self._event(frame)

    def _command(self, line: bytes) -> None:
        try:
            frame: object = json.loads(line)
        except (ValueError, RecursionError):
            frame = None
        if self._token is not None and not self._is_allowed(frame):
            return
        self._unanswered += 1
        if isinstance(frame, dict):
            frame.pop("token", None)  # meant for this process; the daemon must not see it
            self._send(frame)
        else:
            self._wire.send(line)  # the daemon answers with the error

    def _is_allowed(self, frame: object) -> bool:
        given = frame.get("token") if isinstance(frame, dict) and frame.get("type") == "hello" else None
        if isinstance(given, str) and hmac.compare_digest(given.encode(), str(self._token).encode()):
            self._token = None
            return True
        sentence = "the first command must be hello with the token of ZOTCORE_RPC_TOKEN"
        command = frame.get("type", "") if isinstance(frame, dict) else ""
        failure = {"type": "response", "command": command, "success": False, "error": sentence, "code": "unauthorized"}
        self._print(failure)
        self.refused = True
        return False

    def _response(self, frame: Json) -> None:
        if frame.get("id") == ATTACH:
            if frame.get("success") is not True:
                raise ClientError(str(frame.get("error")))
            session = child(child(frame, "data"), "session")
            self._model = {"provider": session["provider"], "model": session["model"]}
            self.attached = True
            return
        self._unanswered -= 1
        data = frame.get("data")
        if frame.get("command") == "hello" and isinstance(data, dict):
            data.update(self._model)  # `zot rpc` names the session's model; the daemon's own hello has no session
        if frame.get("command") in {"prompt", "compact"} and isinstance(data, dict):
            started = maybe_text(data, "run") or maybe_text(data, "input")
            self._unfinished |= {started} if started else set()
        self._print(frame)

    def _event(self, frame: Json) -> None:
        run, taken = maybe_text(frame, "run"), maybe_text(frame, "input")
        if run and taken in self._unfinished:  # a queued input has started
            self._unfinished.discard(taken or "")
            self._unfinished.add(run)
        if frame.get("type") == "done":
            self._unfinished.discard(run or "")
        del frame["session"]
        frame.pop("seq", None)
        self._print(frame)

    def _send(self, frame: Json) -> None:
        self._wire.send(json.dumps({**frame, "session": self._session}).encode())

    def _print(self, frame: Json) -> None:
        sys.stdout.write(json.dumps(frame, separators=(",", ":")) + "\n")
        sys.stdout.flush()
