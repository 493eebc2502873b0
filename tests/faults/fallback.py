"""Runs with a fallback whose first vendor fails at random, in all ways: each ends, and nothing sealed goes astray."""

import asyncio
import json
import random
import re
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from tests.faults.row import Options, Row
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.model_server import ModelServer, Received
from zotd.testing.script import Answer, CallPart, Cut, Refusal, ScriptedReply, Step, StreamError, TextPart, ThinkingPart
from zotd.testing.wire_client import WireClient
from zotd.wire.content import Tokens

RUNS = 200
SESSIONS = 10
STEPS = 2
"""Calls of `bash` in each run, one in each step."""

SETTLE_S = 300.0
"""Longest time for all runs."""

LIMITS = {
    "ZOT_LIMITS_RETRY_PATIENCE_S": "600",
    "ZOT_LIMITS_RETRY_PAUSE_S": "0.2",
    "ZOT_LIMITS_FALLBACK_PATIENCE_S": "0.3",
    "ZOT_LIMITS_FALLBACK_REST_S": "0.02",
}
"""Rests that are short for the first vendor to be asked again in almost every step."""

OWN, OTHER = "anthropic/claude-sonnet-4-5", "openai/gpt-5.6-sol"

PRICES = {"first": (3.0, 15.0), "second": (2.0, 8.0)}
"""USD for a million tokens of input and of output."""

ANSWERS = (*["clear"] * 6, "529", "429", "retry-after", "patient", "quota", "no model", "key", "cut", "overloaded")
"""What the first vendor says; `patient` asks for more time than the run waits."""

CONNECTIONS = (*["clear"] * 8, "page", "bad gateway", "reset", "refused")
"""What becomes of a connection to it."""

REFUSALS = {
    "529": Refusal(529, "Overloaded"),
    "429": Refusal(429, "slow down"),
    "retry-after": Refusal(429, "slow down", headers={"retry-after": "0.05"}),
    "patient": Refusal(429, "slow down", headers={"retry-after": "1"}),
    "quota": Refusal(400, "Your credit balance is too low to access the API."),
    "no model": Refusal(404, "model: claude-sonnet-4-5", kind="not_found_error"),
    "key": Refusal(401, "invalid x-api-key"),
}

PAGE = b"<html><head><title>Sign in</title></head></html>"
PAGES = {"page": b"HTTP/1.1 200 OK", "bad gateway": b"HTTP/1.1 502 Bad Gateway"}

RESET = struct.pack("ii", 1, 0)
"""`SO_LINGER` of no time: closing sends RST."""

REFUSED_S = 0.05
"""How long nothing listens."""

END_S = 10.0
"""Longest time for connections to end when both sides have left."""

WITNESS = "witness"

SEALED = {
    "first": re.compile(r"a thought of the first|sealed-first|toolu_"),
    "second": re.compile(r"a thought of the second|sealed-second|\b(?:rs|msg|fc)_"),
}
"""What only its author may get."""


class Vendor:
    """One vendor's model; it keeps what it has billed."""

    def __init__(self, name: str, fate: Callable[[], str]) -> None:
        self.billed = 0.0
        self.said: Counter[str] = Counter()
        self._name = name
        self._fate = fate
        self._numbers = count(1)

    def answer(self, received: Received) -> Answer:
        """What it says to this history, whichever API it came in."""
        kind = self._fate()
        self.said[kind] += 1
        if kind in REFUSALS:
            return REFUSALS[kind]
        number = next(self._numbers)
        usage = Tokens(input=100 + 37 * number % 5000, output=10 + 11 * number % 700)
        steps = self._steps(json.dumps(received.messages), number)
        if kind == "clear":
            self._bill(usage)
            return ScriptedReply(steps, usage=usage)
        # Anthropic tells the tokens of the request at the beginning of the reply, and that it has written one.
        self._bill(Tokens(input=usage.input, output=1))
        broken: Step = Cut() if kind == "cut" else StreamError("Overloaded", "overloaded_error")
        return ScriptedReply([*steps[: number % len(steps)], broken], usage=usage)

    def _steps(self, history: str, number: int) -> list[Step]:
        key = re.findall(r"go on with (k\d+x\d+)", history)[-1]
        done = len(set(re.findall(rf"ran {key}x(\d+)", history)))
        thought = ThinkingPart([f"a thought of the {self._name}"], f"sealed-{self._name}-{number}")
        if done == STEPS:
            return [thought, TextPart([f"{key} ", "is done"])]
        call = CallPart("bash", {"command": f"echo ran {key}x{done} >> {WITNESS}"})
        return [thought, TextPart(["I call."]), call]

    def _bill(self, tokens: Tokens) -> None:
        read, written = PRICES[self._name]
        self.billed += (tokens.input * read + tokens.output * written) / 1e6


class Road:
    """Between the daemon and the first vendor; a connection carries one request."""

    def __init__(self, model_url: str, chance: random.Random) -> None:
        parts = urlsplit(model_url)
        self._model = (str(parts.hostname), int(parts.port or 0))
        self._chance = chance
        # Not `asyncio.start_server`, which loses a connection that is accepted while it closes (Python 3.11).
        self._listener: socket.socket | None = None
        self._tasks = asyncio.TaskGroup()
        self._is_over = False
        self.port = 0
        self.met: Counter[str] = Counter()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        self._open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_over = True
        self._close()
        async with asyncio.timeout(END_S):
            await self._tasks.__aexit__(kind, error, trace)

    def _open(self) -> None:
        """Listen, at the same port as before."""
        if self._listener is None and not self._is_over:
            self._listener = socket.create_server(("127.0.0.1", self.port))
            self._listener.setblocking(False)
            self.port = self._listener.getsockname()[1]
            asyncio.get_running_loop().add_reader(self._listener, self._accept, self._listener)

    def _close(self) -> None:
        """Listen no more: connections are refused."""
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()
            self._listener = None

    def _accept(self, listener: socket.socket) -> None:
        with suppress(BlockingIOError, ConnectionAbortedError):
            connection, _ = listener.accept()
            self._tasks.create_task(self._serve(connection), name="connection")

    async def _serve(self, connection: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=connection)
        kind = self._chance.choice(CONNECTIONS)
        self.met[kind] += 1
        try:
            if kind in PAGES:
                await reader.readuntil(b"\r\n\r\n")
                head = b"%b\r\ncontent-type: text/html\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
                writer.write(head % (PAGES[kind], len(PAGE)) + PAGE)
                await writer.drain()
            elif kind == "clear":
                await self._carry(reader, writer)
            else:
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        except (OSError, asyncio.IncompleteReadError):
            pass  # either side may leave
        finally:
            writer.close()
        if kind == "refused":
            self._close()
            await asyncio.sleep(REFUSED_S)  # the fault itself: nothing is waited for
            self._open()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).rstrip().split(b"\r\n")
        fields = [line for line in head if not line.lower().startswith(b"connection:")]
        length = next(int(line.partition(b":")[2]) for line in fields if line.lower().startswith(b"content-length:"))
        body = await reader.readexactly(length)
        there, back = await asyncio.open_connection(*self._model)
        try:
            back.write(b"\r\n".join([*fields, b"connection: close", b"", body]))
            while data := await there.read(65536):
                writer.write(data)
            await writer.drain()
        finally:
            back.close()


class Ends:
    """How the runs have ended."""

    def __init__(self) -> None:
        self.answered = 0
        """With `end_turn` and the answer that was expected."""
        self.cost = 0.0
        self.away = 0
        self.back = 0
        self.retries = 0

    async def work(self, daemon: DaemonProcess, keys: list[str]) -> None:
        """One session, a run after the other."""
        async with WireClient.connect(daemon.place.socket) as client:
            provider, _, model = OWN.partition("/")
            asks = {"cwd": str(daemon.place.cwd), "provider": provider, "model": model, "reasoning": "high"}
            made = (await client.ask("session.create", **asks, fallback=[OTHER]))["session"]
            assert isinstance(made, dict)
            await client.ask("attach", session=made["id"])
            for key in keys:
                await client.ask("prompt", session=made["id"], message=f"go on with {key}")
                self._see(await client.until("done"), key)
            found = await client.ask("session.get", session=made["id"])
            usage = found["usage"]
            assert isinstance(usage, dict)
            self.cost += float(usage["cost_usd"])

    def _see(self, events: list[dict[str, object]], key: str) -> None:
        stops = [event["stop"] for event in events if event["type"] == "turn_end"]
        said = [json.dumps(event["content"]) for event in events if event["type"] == "assistant_message"]
        self.answered += stops[-1] == "end_turn" and f"{key} is done" in said[-1]
        switches = [event for event in events if event["type"] == "model_switched"]
        self.back += sum(event.get("own") is True for event in switches)
        self.away += sum(event.get("own") is not True for event in switches)
        self.retries += sum(event["type"] == "retry" for event in events)


def _configure(daemon: DaemonProcess, first_url: str, second: ModelServer) -> None:
    home = daemon.place.home
    home.mkdir(mode=0o700, exist_ok=True)
    lines = [
        f'[providers.anthropic]\nbase_url = "{first_url}"',
        f'[providers.openai]\nbase_url = "{second.openai_url}"\napi = "responses"',
    ]
    for label, (read, written) in zip((OWN, OTHER), PRICES.values(), strict=True):
        provider, _, model = label.partition("/")
        prices = f"{{ input = {read}, output = {written} }}"
        lines.append(f'[[models]]\nprovider = "{provider}"\nid = "{model}"\nprices = {prices}')
    (home / "config.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    keys = {"anthropic": {"api_key": "sk-first"}, "openai": {"api_key": "sk-second"}}
    (home / "auth.json").write_text(json.dumps(keys), encoding="utf-8")
    (home / "auth.json").chmod(0o600)


def _astray(requests: list[Received], whose: str) -> int:
    """How many of these requests hold something that only the other vendor may get."""
    return sum(SEALED[whose].search(json.dumps(request.body)) is not None for request in requests)


async def run(options: Options) -> Row:
    """Prompt sessions whose first vendor fails, and look at every request and every bill."""
    start = time.monotonic()
    chance = random.Random(options.seed)
    runs = options.of(RUNS)
    ends = Ends()
    first, second = Vendor("first", lambda: chance.choice(ANSWERS)), Vendor("second", lambda: "clear")
    with TemporaryDirectory(prefix="zot-") as folder:
        daemon = DaemonProcess(Path(folder), LIMITS)
        async with AsyncExitStack() as stack:
            to_first = await stack.enter_async_context(ModelServer(first.answer))
            to_second = await stack.enter_async_context(ModelServer(second.answer))
            road = await stack.enter_async_context(Road(to_first.url, chance))
            _configure(daemon, f"http://127.0.0.1:{road.port}", to_second)
            stack.enter_context(daemon)
            async with asyncio.timeout(SETTLE_S), asyncio.TaskGroup() as tasks:
                for number in range(min(SESSIONS, runs)):
                    keys = [f"k{number}x{run}" for run in range(number, runs, SESSIONS)]
                    tasks.create_task(ends.work(daemon, keys), name="session")
        effects = Counter((daemon.place.cwd / WITNESS).read_text(encoding="utf-8").splitlines())
    twice = sum(times > 1 for times in effects.values())
    astray = _astray(to_second.requests, "first") + _astray(to_first.requests, "second")
    billed = first.billed + second.billed
    faults = ", ".join(f"{times} {kind}" for kind, times in (first.said + road.met).most_common() if kind != "clear")
    options.say(f"fallback: {ends.retries} retries; {ends.away} switches away, {ends.back} back; faults: {faults}")
    return Row(
        check=f"{runs} runs with a fallback of another API, the first vendor failing at random in "
        f"{len(set(ANSWERS) | set(CONNECTIONS)) - 1} ways",
        must_give="all end with the answer; no request holds what another vendor sealed; the sessions' cost is what "
        f"the servers billed; each of {STEPS * runs} calls runs once",
        got=f"{ends.answered} of {runs}; {astray} of {len(to_first.requests) + len(to_second.requests)} requests; "
        f"${ends.cost:.4f} of ${billed:.4f}; {twice} ran twice, {STEPS * runs - len(effects)} did not run; "
        f"{ends.away} switches away, {ends.back} back, {ends.retries} retries; faults: {faults}",
        ok=ends.answered == runs
        and not astray
        and abs(ends.cost - billed) < 0.005
        and len(effects) == STEPS * runs
        and not twice
        and ends.away > 0,
        command=f"python -m tests.faults fallback --seed {options.seed}",
        seconds=time.monotonic() - start,
        seed=options.seed,
    )
