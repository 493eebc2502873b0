r"""A language server whose errors are in the text, and that misbehaves on demand.

    python -m zotd.testing.language_server [TRAIT ...]

A line `x = 1  # error: no such name` has the error "no such name", and `# warning: …` a warning. A line `# error in b.txt: text`
is an error in another file. It answers requests for errors, unless a trait says something else; see `TRAITS`. What it receives
is appended to the file in `ZOT_TEST_LANGUAGE_SERVER_LOG`, one JSON object a line.
"""

import json
import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote, unquote, urlsplit

Json = dict[str, object]

LOG = "ZOT_TEST_LANGUAGE_SERVER_LOG"

TRAITS = {
    "pushes": "sends errors by itself, with the version of the text",
    "no-version": "sends errors by itself, without a version, an empty list first",
    "says-later": "says only after `initialized` that it can be asked for errors",
    "silent": "sends errors by itself, but none if they are the same as before",
    "stale": "sends the errors of the text before, with its version, ahead of those that count",
    "future": "sends errors of a version that does not exist, ahead of those that count",
    "crashes": "ends before it answers anything",
    "crashes-on-open": "ends when a file is opened",
    "crashes-once": "ends when a file is opened, unless the file `crashed` is there, which it makes",
    "hangs": "does not answer `initialize`",
    "hangs-on-errors": "answers no request for errors",
    "deaf": "does not read any more after `initialize`",
    "floods": "sends notifications without end",
    "huge": "sends a message of 10 MB ahead of each answer",
    "bad-header": "prints a sentence of 8 KiB in place of an answer",
    "malformed": "sends messages that are no JSON-RPC, without end",
    "bad-errors": "sends errors that have no range ahead of those that count",
    "asks": "asks the client for its settings, for things that do not exist, and with bad parameters",
    "busy": "answers the first request for errors with `server cancelled`",
    "refuses": "answers `initialize` with an error",
    "stays": "ignores `exit` and the end of its input",
    "leaves-others": "starts a process that outlives it",
    "sees-others": "says that the errors of a file depend on other files",
}

_ERROR = re.compile(r"# (error|warning)(?: in (\S+))?: (.*)")


class Server:
    """One conversation over stdin and stdout."""

    def __init__(self, traits: frozenset[str], source: BinaryIO, sink: BinaryIO) -> None:
        """Use these traits."""
        self._traits, self._source, self._sink = traits, source, sink
        self._texts: dict[str, tuple[int, str]] = {}
        self._asked = 0

    def run(self) -> None:
        """Talk until the client says goodbye."""
        if "crashes" in self._traits:
            sys.exit("fake: a missing library")
        if "leaves-others" in self._traits and os.fork() == 0:
            os.setsid()
            time.sleep(1000)
        handlers: Mapping[str, Callable[[Json], None]] = {
            "initialize": self._initialize,
            "textDocument/didOpen": self._opened,
            "textDocument/didChange": self._changed,
            "textDocument/diagnostic": self._diagnose,
            "shutdown": lambda message: self._answer(message, None),
            "exit": lambda _: None if "stays" in self._traits else sys.exit(0),
        }
        while (message := self._read()) is not None:
            _note(message)
            handler = handlers.get(str(message.get("method")))
            if handler is not None:
                handler(message)
        while "stays" in self._traits:
            time.sleep(1000)

    # --- requests and notifications -----------------------------------------------------------------------------

    def _initialize(self, message: Json) -> None:
        if "hangs" in self._traits:
            time.sleep(1000)
        if "refuses" in self._traits:
            self._send({"id": message["id"], "error": {"code": -32603, "message": "no licence"}})
            return
        capabilities: Json = {"textDocumentSync": {"openClose": True, "change": 1, "save": True}}
        if not self._traits & {"says-later", "pushes", "silent", "no-version", "stale", "future", "bad-errors"}:
            capabilities["diagnosticProvider"] = {"interFileDependencies": "sees-others" in self._traits}
        self._answer(message, {"capabilities": capabilities})
        while "floods" in self._traits:
            self._send({"method": "window/logMessage", "params": {"type": 3, "message": "x" * 10_000}})
        while "malformed" in self._traits:
            self._frame(b'{"jsonrpc": "1.0"}')
        while "deaf" in self._traits:
            time.sleep(1000)
        if "says-later" in self._traits:
            registered = {"id": "pull", "method": "textDocument/diagnostic", "registerOptions": {}}
            self._send({"id": 9, "method": "client/registerCapability", "params": {"registrations": [registered]}})
        if "asks" in self._traits:
            self._send({"id": 1, "method": "workspace/configuration", "params": {"items": [{"section": "fake.depth"}]}})
            self._send({"id": "two", "method": "window/dance", "params": {}})
            self._send({"id": 3, "method": "workspace/configuration", "params": {"items": 7}})

    def _opened(self, message: Json) -> None:
        crashed = Path("crashed")
        if "crashes-on-open" in self._traits or ("crashes-once" in self._traits and not crashed.exists()):
            crashed.touch()
            os.kill(os.getpid(), 11)
        document = _table(_table(message["params"])["textDocument"])
        self._take(str(document["uri"]), document["version"], str(document["text"]))

    def _changed(self, message: Json) -> None:
        params = _table(message["params"])
        document, changes = _table(params["textDocument"]), params["contentChanges"]
        assert isinstance(changes, list)
        self._take(str(document["uri"]), document["version"], str(changes[-1]["text"]))

    def _take(self, uri: str, version: object, text: str) -> None:
        assert isinstance(version, int)
        before = self._texts.get(uri, (0, ""))
        self._texts[uri] = version, text
        if "stale" in self._traits:
            self._publish(uri, before[1], before[0])
        if "future" in self._traits:
            self._publish(uri, "# error: of another text", version + 1)
        if "bad-errors" in self._traits:
            params = {"uri": uri, "version": version, "diagnostics": [{"message": "nowhere"}]}
            self._send({"method": "textDocument/publishDiagnostics", "params": params})
        if "no-version" in self._traits:
            self._publish(uri, "", None)
            self._publish(uri, text, None)
        if "silent" in self._traits and _errors(before[1], None) != _errors(text, None):
            self._publish(uri, text, version)
        if self._traits & {"pushes", "stale", "future", "bad-errors"}:
            self._publish(uri, text, version)

    def _diagnose(self, message: Json) -> None:
        uri = str(_table(_table(message["params"])["textDocument"])["uri"])
        self._asked += 1
        if "hangs-on-errors" in self._traits:
            return
        if "busy" in self._traits and self._asked == 1:
            self._send({"id": message["id"], "error": {"code": -32802, "message": "again"}})
            return
        if "bad-header" in self._traits:
            self._sink.write(b"a sentence by mistake\n" * 400)
            self._sink.flush()
            return
        if "huge" in self._traits:
            self._send({"method": "window/logMessage", "params": {"type": 3, "message": "x" * 10_000_000}})
        self._answer(message, {"kind": "full", "items": self._found(uri)})

    # --- errors -------------------------------------------------------------------------------------------------

    def _found(self, uri: str) -> list[Json]:
        """The errors of an open file: those in its text, and those that other texts have for it."""
        name = _path(uri).name
        own = _errors(self._texts.get(uri, (0, ""))[1], None)
        return own + [
            error for other, (_, text) in self._texts.items() if other != uri for error in _errors(text, name)
        ]

    def _publish(self, uri: str, text: str, version: int | None) -> None:
        for name in {name for _, name, _ in _ERROR.findall(text) if name}:
            other = "file://" + quote(str(_path(uri).parent / name))
            told: Json = {"uri": other, "diagnostics": _errors(text, name)}
            of = self._texts.get(other)
            self._send({"method": "textDocument/publishDiagnostics", "params": _with_version(told, of and of[0])})
        params: Json = {"uri": uri, "diagnostics": _errors(text, None)}
        self._send({"method": "textDocument/publishDiagnostics", "params": _with_version(params, version)})

    # --- bytes --------------------------------------------------------------------------------------------------

    def _answer(self, message: Json, result: object) -> None:
        self._send({"id": message["id"], "result": result})

    def _send(self, message: Json) -> None:
        self._frame(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def _frame(self, body: bytes) -> None:
        self._sink.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._sink.flush()

    def _read(self) -> Json | None:
        length = 0
        while (line := self._source.readline()) != b"\r\n":
            if not line:
                return None
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        found = json.loads(self._source.read(length))
        assert isinstance(found, dict)
        return found


def _errors(text: str, of: str | None) -> list[Json]:
    """The errors in a text about itself (`of` is None) or about the file with this name."""
    found: list[Json] = []
    for number, line in enumerate(text.split("\n")):
        match = _ERROR.search(line)
        if match and (match[2] or None) == of:
            start = {"line": 0 if of else number, "character": match.start()}
            severity = 1 if match[1] == "error" else 2
            found.append(
                {"range": {"start": start, "end": start}, "severity": severity, "message": match[3], "source": "fake"}
            )
    return found


def _with_version(params: Json, version: int | None) -> Json:
    return params if version is None else {**params, "version": version}


def _path(uri: str) -> Path:
    return Path(unquote(urlsplit(uri).path))


def _table(value: object) -> Json:
    assert isinstance(value, dict)
    return value


def _note(message: Json) -> None:
    if LOG in os.environ:
        with Path(os.environ[LOG]).open("a", encoding="utf-8") as file:
            file.write(json.dumps(message) + "\n")


if __name__ == "__main__":
    unknown = set(sys.argv[1:]) - TRAITS.keys()
    if unknown:
        sys.exit(f"unknown traits: {', '.join(sorted(unknown))}")
    Server(frozenset(sys.argv[1:]), sys.stdin.buffer, sys.stdout.buffer).run()
