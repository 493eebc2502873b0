"""A million damaged frames on each carrier: every line gets one answer, and nothing breaks.

No error in the log, no answer that says `internal`, memory as it was after the first half, and all the time the daemon
answers another client. Half of the frames come before hello; through the WebSocket door, where a connection has only one
before hello and is closed for it, these are 1 in 100, each on a connection of its own.
"""

import random
import time
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.faults.carriers import Carrier, Daemon, Line, Rpc
from tests.faults.mutations import Mutations, commands
from tests.faults.row import Options, Row
from tests.faults.web import Web
from zotd.testing.live_daemon import DaemonPaths, place
from zotd.testing.model_server import ModelServer
from zotd.testing.script import text

FRAMES = 1_000_000
"""On each carrier."""

BATCH = 200
"""Lines in one write: fewer than the 256 answers that may wait for a client."""

CONNECTION = 20_000
"""Frames of one connection; then comes a new one, with a new session."""

FLAT_MIB = 8.0
"""What the process may grow by in the second half: fragments, and the answers that are kept for those who ask again. A
leak of 100 bytes a frame would be 48 MiB."""

STRANGERS = 100
"""Of so many frames through the WebSocket door one is the first of a connection, and its last."""

MIB = 1024 * 1024


@dataclass
class Outcome:
    """Of one carrier."""

    carrier: str
    frames: int = 0
    failures: list[str] = field(default_factory=list)
    """Batches that did not get one answer for each line, with the state of the connection and of the log."""
    internal: int = 0
    """Answers that say that the program failed."""
    complaints: list[str] = field(default_factory=list)
    rss_bytes: list[int] = field(default_factory=list)
    """At the end of each connection."""
    slowest_ping_s: float = 0.0
    seconds: float = 0.0
    admitted: int = 0
    """Connections that were not closed although what they sent first was no hello with a token."""
    strangers: int = 0
    """Those connections, of one frame each."""

    @property
    def is_clean(self) -> bool:
        """Nothing broke; says nothing of memory."""
        return not (self.internal or self.complaints or self.admitted)

    @property
    def grown_mib(self) -> float:
        """In the second half."""
        return (self.rss_bytes[-1] - self.rss_bytes[(len(self.rss_bytes) - 1) // 2]) / MIB

    def words(self) -> str:
        """For the table."""
        faults = self.internal + len(self.complaints) + self.admitted
        ping = f", pings <= {self.slowest_ping_s * 1000:.0f} ms" if self.slowest_ping_s else ""
        rate = f"{self.frames / self.seconds:,.0f}/s"
        first = f" ({self.strangers:,} of them before hello, a connection each)" if self.strangers else ""
        return f"{self.carrier}: {faults} in {self.frames:,}{first}, {self.grown_mib:+.1f} MiB{ping}, {rate}"


async def run(options: Options) -> Row:
    """All carriers, one after the other."""
    start = time.monotonic()
    outcomes = [await over_socket(options), await over_stdio(options), await over_websocket(options)]
    return Row(
        check=f"{FRAMES:,} mutated frames before and after hello, on each carrier",
        must_give="0 unhandled exceptions, memory flat",
        got="; ".join(outcome.words() for outcome in outcomes),
        ok=all(outcome.is_clean and outcome.grown_mib <= FLAT_MIB for outcome in outcomes),
        command=f"python -m tests.faults mutated_frames --seed {options.seed}",
        seconds=time.monotonic() - start,
        seed=options.seed,
    )


async def over_socket(options: Options) -> Outcome:
    """To the daemon: on connections that have not said hello, then on those of an admin."""
    with TemporaryDirectory(prefix="zot-") as folder:
        async with (
            ModelServer(lambda _: text("ok")) as model,
            Daemon.started(Path(folder), model.openai_url) as daemon,
        ):
            return await _attack(options, "Unix socket", daemon, daemon.place)


async def over_stdio(options: Options) -> Outcome:
    """To one `zot rpc`."""
    with TemporaryDirectory(prefix="zot-") as folder:
        where = place(Path(folder))
        async with (
            ModelServer(lambda _: text("ok")) as model,
            Rpc.started(Path(folder), where, model.openai_url) as rpc,
        ):
            return await _attack(options, "stdio", rpc, where)


async def over_websocket(options: Options) -> Outcome:
    """To the daemon: on connections of an admin's token, and on some that have none."""
    with TemporaryDirectory(prefix="zot-") as folder:
        async with (
            ModelServer(lambda _: text("ok")) as model,
            Web.opened(Path(folder), model.openai_url) as daemon,
        ):
            return await _attack(options, "WebSocket", daemon, daemon.place)


async def _attack(options: Options, name: str, carrier: Carrier, where: DaemonPaths) -> Outcome:
    outcome = Outcome(name)
    chance = random.Random(options.seed)
    start = time.monotonic()
    frames = options.of(FRAMES)
    for says_hello in cycle([True] if isinstance(carrier, Web) else [False, True]):
        if outcome.frames >= frames:
            break
        async with carrier.line(says_hello=says_hello) as line:
            mutations = Mutations(chance, commands(stdio=isinstance(carrier, Rpc)), _known(line, where))
            count = min(frames // 2, CONNECTION)
            if isinstance(carrier, Web):
                count -= await _knock(carrier, mutations, max(1, count // STRANGERS), outcome, chance)
            await _use(line, mutations, count, outcome, carrier)
        outcome.rss_bytes.append(carrier.rss_bytes())
        options.say(f"{name}: {outcome.frames:,} frames, {outcome.rss_bytes[-1] / MIB:.1f} MiB")
    outcome.seconds = time.monotonic() - start
    outcome.complaints = [*outcome.failures, *carrier.complaints()]
    for complaint in outcome.complaints[:5]:
        options.say(f"{name}: {complaint[-1500:]}")
    if outcome.internal or outcome.admitted:
        options.say(f"{name}: {outcome.internal} answers with `internal`, {outcome.admitted} connections admitted")
    return outcome


async def _knock(carrier: Web, mutations: Mutations, count: int, outcome: Outcome, chance: random.Random) -> int:
    """Send so many as the first frame of connections; how many were sent."""
    outcome.admitted += await carrier.refuse(mutations.lines(count), outcome.strangers, chance)
    outcome.strangers += count
    outcome.frames += count
    return count


def _known(line: Line, where: DaemonPaths) -> dict[str, object]:
    """Values of fields that lead somewhere."""
    after = {"epoch": line.epoch, "seq": 0}
    return {"session": line.session, "cwd": str(where.cwd), "path": str(where.cwd), "after": after}


async def _use(line: Line, mutations: Mutations, count: int, outcome: Outcome, carrier: Carrier) -> None:
    """Send so many frames on one connection, or until it breaks."""
    sent, expected = 0, line.answers.count
    internal = line.answers.internal
    while sent < count:
        lines = mutations.lines(min(BATCH, count - sent))
        sent += len(lines)
        data, answers = carrier.framed(lines)
        expected += answers
        line.write(data)
        if isinstance(carrier, Daemon):
            asked = time.monotonic()
            await carrier.ping()
            outcome.slowest_ping_s = max(outcome.slowest_ping_s, time.monotonic() - asked)
        if not await line.answers.until(expected):
            outcome.failures.append(
                f"{line.answers.state}, {expected:,} expected; the last warnings: {carrier.warnings()}"
            )
            break
    outcome.frames += sent
    outcome.internal += line.answers.internal - internal
