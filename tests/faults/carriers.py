"""Ways to send bytes to zot and to count its answers: the daemon's socket, and the pipes of `zot rpc`.

Answers are counted as bytes, because a million of them are waited for: a response begins with its type, and a quote
inside a string is escaped. The third carrier, WebSocket, is in `web`.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from zotd.testing.live_daemon import DaemonPaths, DaemonProcess
from zotd.testing.wire_client import WireClient

ANSWER_S = 30.0
"""Longest wait for answers; half of what the slowest command may take is enough on a busy machine."""

END_S = 15.0
"""Longest wait for the end of `zot rpc`."""

RESPONSE = b'{"type":"response",'

INTERNAL = b'"code":"internal"'

Json = dict[str, object]


class Answers:
    """Counts what comes back on one connection."""

    def __init__(self) -> None:
        self.count = 0
        self.internal = 0
        """Of them, those that say that the program failed."""
        self._rest = b""
        self._is_over = False
        self._changed = asyncio.Event()

    def take(self, data: bytes) -> None:
        """Bytes of the other side, cut anywhere."""
        block, newline, rest = data.rpartition(b"\n")
        block, self._rest = self._rest + block, rest if newline else self._rest + rest
        if newline:
            self.count += block.count(RESPONSE)
            self.internal += block.count(INTERNAL)
            self._changed.set()

    def end(self) -> None:
        """Nothing more comes."""
        self._is_over = True
        self._changed.set()

    async def until(self, count: int) -> bool:
        """Wait until there are so many; False when there are more, or never will be as many."""
        try:
            async with asyncio.timeout(ANSWER_S):
                while self.count < count and not self._is_over:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return self.count == count

    @property
    def state(self) -> str:
        """How many there are, and whether the connection is open, for the report of a failure."""
        return f"{self.count:,} answers, {'connection closed' if self._is_over else 'connection open'}"


@dataclass(frozen=True, slots=True)
class Line:
    """One connection."""

    write: Callable[[bytes], object]
    answers: Answers
    session: str
    """Empty where there is only one."""
    epoch: str = ""


class Daemon:
    """A daemon in a process of its own, and a client of it that looks after things."""

    def __init__(self, process: DaemonProcess, control: WireClient, model_url: str) -> None:
        self._process = process
        self._control = control
        self._model_url = model_url

    @classmethod
    @asynccontextmanager
    async def started(
        cls, folder: Path, model_url: str, extra: Mapping[str, str] | None = None
    ) -> AsyncIterator["Daemon"]:
        """It lives until the end of the block. `extra`: variables of its environment."""
        # A mutated session may name a model that cannot be reached. Its `compact` is answered when it starts, behind
        # the run that retries, so the run must give up before `ANSWER_S` ends.
        patience = {"ZOT_LIMITS_RETRY_PATIENCE_S": "1"}
        with DaemonProcess(folder, {**patience, **(extra or {})}) as process:
            async with WireClient.connect(process.place.socket) as control:
                await control.ask("hello", role="admin")
                yield cls(process, control, model_url)

    @property
    def place(self) -> DaemonPaths:
        """Where it lives."""
        return self._process.place

    @asynccontextmanager
    async def line(self, *, says_hello: bool) -> AsyncIterator[Line]:
        """A new connection and a new session; all sessions are deleted at the end. With hello it is an admin's."""
        options = {"cwd": str(self.place.cwd), "provider": "openai", "base_url": self._model_url}
        made = await self.ask("session.create", **options, secrets={"api_key": "sk-none"})
        answers = Answers()
        transport = await self.connected(answers)
        try:
            if says_hello and answers.count == 0:
                transport.write(b'{"type":"hello","role":"admin"}\n')
                await answers.until(1)
            yield Line(transport.write, answers, _text(_child(made, "session"), "id"), _text(made, "epoch"))
        finally:
            transport.abort()
        while sessions := (await self.ask("session.list", limit=500))["sessions"]:
            assert isinstance(sessions, list)
            for session in sessions:  # one that is ephemeral ends by itself, perhaps just now
                self._control.seen.clear()
                await self._control.answer("session.delete", session=session["id"])

    async def connected(self, answers: Answers) -> asyncio.Transport:
        """A new connection, whose answers go there."""
        wire = Wire(answers)
        transport, _ = await asyncio.get_running_loop().create_unix_connection(lambda: wire, self.place.socket)
        return transport

    def framed(self, lines: Sequence[bytes]) -> tuple[bytes, int]:
        """What is written for these lines, and how many answers they get."""
        return framed(lines)

    async def ping(self) -> None:
        """Return when it has answered somebody else."""
        await self.ask("ping")

    def rss_bytes(self) -> int:
        """Resident memory."""
        return int(psutil.Process(self._process.pid).memory_info().rss)

    def warnings(self) -> list[str]:
        """The last warnings of its log."""
        return [line for line in self._process.log.splitlines() if " WARNING " in line][-3:]

    def complaints(self) -> list[str]:
        """What must not be in its log, nor on its standard error, where the log goes too."""
        return list(dict.fromkeys([*errors(self._process.log), *errors(self._process.stderr)]))

    async def ask(self, command: str, **fields: object) -> Json:
        """What looks after the daemon asks it something."""
        self._control.seen.clear()  # it keeps all frames, for tests with fewer of them
        return await self._control.ask(command, **fields)


class Rpc:
    """`zot rpc`."""

    def __init__(self, line: Line, pid: int, folder: Path) -> None:
        self._line = line
        self._pid = pid
        self._folder = folder

    @classmethod
    @asynccontextmanager
    async def started(cls, folder: Path, place: DaemonPaths, model_url: str) -> AsyncIterator["Rpc"]:
        """It lives until the end of the block, and must then end by itself."""
        answers = Answers()
        flags = ["--provider=openai", f"--base-url={model_url}", "--api-key=sk-none", f"--cwd={place.cwd}"]
        with (folder / "stderr").open("ab") as stderr:
            transport, wire = await asyncio.get_running_loop().subprocess_exec(
                lambda: _Pipes(answers),
                *(sys.executable, "-m", "zotd.cli", "rpc", *flags),
                env=place.env,
                stderr=stderr,
            )
        pipe = transport.get_pipe_transport(0)
        assert isinstance(pipe, asyncio.WriteTransport)
        try:
            yield cls(Line(pipe.write, answers, ""), transport.get_pid(), folder)
            pipe.close()
            async with asyncio.timeout(END_S):
                await wire.ended.wait()
        finally:
            transport.close()

    @asynccontextmanager
    async def line(self, *, says_hello: bool) -> AsyncIterator[Line]:
        """The one there is."""
        if says_hello:
            before = self._line.answers.count
            self._line.write(b'{"type":"hello"}\n')
            await self._line.answers.until(before + 1)
        yield self._line

    def framed(self, lines: Sequence[bytes]) -> tuple[bytes, int]:
        """What is written for these lines, and how many answers they get."""
        return framed(lines)

    def rss_bytes(self) -> int:
        """Resident memory."""
        return int(psutil.Process(self._pid).memory_info().rss)

    def warnings(self) -> list[str]:
        """It has no log."""
        return []

    def complaints(self) -> list[str]:
        """What must not be on its standard error."""
        return errors((self._folder / "stderr").read_text(encoding="utf-8"))


Carrier = Daemon | Rpc


def framed(lines: Sequence[bytes]) -> tuple[bytes, int]:
    """NDJSON of these lines, and how many responses it gets: one for each line in it that is not empty."""
    data = b"\n".join(lines) + b"\n"
    return data, answers_to(data)


def answers_to(data: bytes) -> int:
    """How many responses these bytes get."""
    return sum(line not in {b"", b"\r"} for line in data.split(b"\n"))


def errors(log: str) -> list[str]:
    """Lines of a log that say that something in it has failed."""
    return [line for line in log.splitlines() if " ERROR " in line or " CRITICAL " in line or "Traceback" in line]


class Wire(asyncio.Protocol):
    """Takes answers."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers

    def data_received(self, data: bytes) -> None:
        self._answers.take(data)

    def connection_lost(self, _: Exception | None) -> None:
        self._answers.end()


class _Pipes(asyncio.SubprocessProtocol):
    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self.ended = asyncio.Event()

    def pipe_data_received(self, _: int, data: bytes) -> None:
        self._answers.take(data)

    def process_exited(self) -> None:
        self._answers.end()
        self.ended.set()


def _child(frame: Json, name: str) -> Mapping[str, object]:
    value = frame[name]
    assert isinstance(value, dict)
    return value


def _text(frame: Mapping[str, object], name: str) -> str:
    return str(frame[name])
