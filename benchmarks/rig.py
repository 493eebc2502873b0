"""What the benchmarks share: a daemon in a temporary home, samples taken in turns, and rows that become a table.

Every figure stands beside a floor from the same run, because machines differ and this one may be busy: the two are
sampled in turns (A B A B), medians are compared, and the ratio is what can be compared with another machine.
"""

import asyncio
import os
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import psutil

from zotd import paths
from zotd.client.client import Client
from zotd.client.session import Session
from zotd.template.client import SWITCH

WARM_UP = 3
"""Rounds that are thrown away: connections, imports and caches."""

READY_S = 20.0
"""How long a program may take to say that it serves; a busy machine starts Python in seconds."""

STOP_S = 10.0
"""How long a program may take to end after SIGTERM; the daemon gives its runs 5 s."""

QUIET_LOAD = 1.0
"""Load average below which a measurement begins."""

QUIET_S = 120.0
"""How long to wait for that; then it is measured all the same, and the table says at which load."""

LOOK_S = 5.0
"""The load average has no event; the kernel computes it every 5 s."""

VENDORS = ("anthropic", "openai")

Probe = Callable[[], Awaitable[float]]
"""Takes one sample."""


# --- places and processes -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Place:
    """A home and a working directory that exist for one measurement, on the disk of the temporary directory."""

    home: Path
    cwd: Path
    env: Mapping[str, str]
    """Of every program: no keys, no proxies, nothing of who runs this."""


@contextmanager
def place(*, checkpoints: bool = True, journal: str = "") -> Iterator[Place]:
    """A place, removed at the end.

    Args:
        checkpoints: files are recorded before steps that may change them.
        journal: the URL of a database with the sessions; empty: they are in a file.
    """
    with tempfile.TemporaryDirectory(prefix="zot-") as folder:
        home, cwd, run = Path(folder, "home"), Path(folder, "work"), Path(folder, "run")
        cwd.mkdir()
        run.mkdir(mode=0o700)
        if not checkpoints:
            home.mkdir(mode=0o700)
            (home / "config.toml").write_text("[checkpoints]\nenabled = false\n")
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        own = {"HOME": folder, "ZOT_HOME": str(home), "XDG_RUNTIME_DIR": str(run)}
        if journal:
            own["ZOT_JOURNAL_URL"] = journal
        yield Place(home, cwd, {**kept, **own, SWITCH: "off"})  # but `template`, which switches it on


@asynccontextmanager
async def program(
    *arguments: str, env: Mapping[str, str], keep: Sequence[int] = (), python: str = sys.executable
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A Python program while it is entered, its output piped; `keep`: descriptors that it inherits."""
    process = await asyncio.create_subprocess_exec(
        python,
        *arguments,
        env=env,
        pass_fds=keep,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        async with asyncio.timeout(STOP_S):
            await process.wait()


@asynccontextmanager
async def daemon(where: Place, *, python: str = sys.executable) -> AsyncIterator[psutil.Process]:
    """A daemon that serves, run by that interpreter."""
    read_end, write_end = os.pipe()
    async with AsyncExitStack() as stack:
        stack.callback(os.close, read_end)
        try:
            arguments = ["-m", "zotd", "--ready-fd", str(write_end)]
            serve = program(*arguments, env=where.env, keep=[write_end], python=python)
            process = await stack.enter_async_context(serve)
        finally:
            os.close(write_end)
        async with asyncio.timeout(READY_S):
            said = await asyncio.to_thread(os.read, read_end, 4096)  # ends with the daemon
        if not said.startswith(b"ready"):
            raise RuntimeError(f"the daemon did not start: {said.decode()}")
        yield psutil.Process(process.pid)


@asynccontextmanager
async def model(where: Place) -> AsyncIterator[str]:
    """The URL of `benchmarks.model`, without a plan."""
    async with program("-m", "benchmarks.model", env=where.env) as process:
        assert process.stdout is not None
        async with asyncio.timeout(READY_S):
            url = await process.stdout.readline()
        yield url.decode().strip()


@asynccontextmanager
async def bare(where: Place) -> AsyncIterator[str]:
    """The socket of `benchmarks.bare`."""
    path = str(where.home.parent / "bare.sock")
    async with program("-m", "benchmarks.bare", path, env=where.env) as process:
        assert process.stdout is not None
        async with asyncio.timeout(READY_S):
            await process.stdout.readline()
        yield path


def connect(where: Place) -> AbstractAsyncContextManager[Client]:
    """A client of the daemon of that place."""
    return Client.connect(path=socket_of(where), env=where.env, autostart=False, name="benchmark")


def socket_of(where: Place) -> str:
    """The daemon's socket."""
    return paths.socket_path(where.env)


def base_url(model_url: str, vendor: str, plan: str) -> str:
    """Where a session of `vendor` finds the model that answers according to `plan` (see `benchmarks.model`)."""
    return f"{model_url}/{plan}" + ("/v1" if vendor == "openai" else "")


@dataclass(frozen=True, slots=True)
class World:
    """A daemon, a model and a client of the daemon."""

    place: Place
    daemon: psutil.Process
    model: str
    client: Client

    async def session(
        self,
        vendor: str,
        plan: str,
        *,
        stored: bool = False,
        client: Client | None = None,
        mode: str = "yolo",
    ) -> Session:
        """A new session whose model follows `plan`."""
        return await (client or self.client).create(
            str(self.place.cwd),
            provider=vendor,
            base_url=base_url(self.model, vendor, plan),
            api_key="none",
            ephemeral=not stored,
            mode=mode,
        )


@asynccontextmanager
async def world(*, checkpoints: bool = True, journal: str = "") -> AsyncIterator[World]:
    """Everything that most rows need, in a place of its own; arguments as for `place`."""
    with place(checkpoints=checkpoints, journal=journal) as where:
        async with model(where) as url, daemon(where) as process, connect(where) as client:
            yield World(where, process, url, client)


def installed(name: str, *arguments: str) -> list[str]:
    """An installed command, as a shell finds it."""
    return [str(Path(sys.executable).parent / name), *arguments]


async def finish(session: Session) -> None:
    """A prompt, to the end of its run."""
    async for _ in session.prompt_batches("go"):
        pass


def cpu_s(process: psutil.Process) -> float:
    """Seconds of a core that the process has used."""
    times = process.cpu_times()
    return float(times.user + times.system)


def rss_mib(process: psutil.Process) -> float:
    """Resident memory."""
    return float(process.memory_info().rss) / 2**20


# --- samples ------------------------------------------------------------------------------------------------------


async def in_turns(rounds: int, probes: Mapping[str, Probe], *, warm_up: int = WARM_UP) -> dict[str, list[float]]:
    """`rounds` samples of each probe, taken in turns, so that what disturbs one disturbs the others too."""
    samples: dict[str, list[float]] = {name: [] for name in probes}
    for _ in range(warm_up + rounds):
        for name, probe in probes.items():
            samples[name].append(await probe())
    return {name: taken[warm_up:] for name, taken in samples.items()}


def median(samples: Sequence[float]) -> float:
    """The middle one."""
    return statistics.median(samples)


def percentile(samples: Sequence[float], percent: float) -> float:
    """The smallest sample that so many percent of all do not exceed."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


async def quiet() -> None:
    """Wait until the machine is idle, for `QUIET_S` at most."""
    deadline = time.monotonic() + QUIET_S
    while os.getloadavg()[0] >= QUIET_LOAD and time.monotonic() < deadline:  # noqa: ASYNC110  (nothing reports it)
        await asyncio.sleep(LOOK_S)


# --- rows ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    measure: str
    value: float
    unit: str
    floor: float | None
    """The least that it could be, in the same unit; None when there is no such thing."""
    floor_is: str
    target: str
    met: bool | None
    """None: no target was set for this line; it explains another one."""
    note: str = ""

    def line(self) -> str:
        """As a row of a Markdown table."""
        floor = "-" if self.floor is None else f"{figure(self.floor)} {self.unit} ({self.floor_is})"
        ratio = "-" if not self.floor else f"{figure(self.value / self.floor)}x"
        verdict = {True: "yes", False: "**no**", None: ""}[self.met]
        note = f" ({self.note})" if self.note else ""
        cells = [self.measure, f"{figure(self.value)} {self.unit}{note}", floor, ratio, self.target, verdict]
        return f"| {' | '.join(cells)} |"


COMMITS = 2
"""What a stored session may wait for, more than an ephemeral one, before its first delta and in a step."""


def stored_row(measure: str, more_ms: float, commit_ms: float, sync_ms: float) -> Row:
    """What it costs that a session is kept: beside a bare commit, and as multiples of what the disk takes."""
    note = f"{more_ms / sync_ms:.1f} fdatasync of {sync_ms:.2g} ms"
    met = more_ms <= COMMITS * commit_ms
    return Row(measure, more_ms, "ms", commit_ms, "bare SQLite commit", f"<= {COMMITS} commits", met, note=note)


HEAD = "| measure | here | floor, same run | ratio | target | met |\n|---|---|---|---|---|---|"


def figure(value: float) -> str:
    """Three digits are all that a busy machine can give."""
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


Measure = Callable[[], Coroutine[object, object, list[Row]]]


def run(measure: Measure) -> None:
    """The main program of one benchmark: measure when the machine is quiet, print the rows."""
    asyncio.run(show([measure]))


async def show(measures: Sequence[Measure]) -> None:
    """Measure one after the other, and print a table as it grows; on standard error, how busy the machine was."""
    await quiet()
    sys.stdout.write(f"{machine()}\n\n{HEAD}\n")
    for measure in measures:
        sys.stderr.write(f"{measure.__module__}: load {os.getloadavg()[0]:.1f}\n")
        for row in await measure():
            sys.stdout.write(row.line() + "\n")
            sys.stdout.flush()


def machine() -> str:
    """One line that says where and when."""
    versions = ", ".join(f"{name} {metadata.version(name)}" for name in ("zotd", "anthropic", "openai", "msgspec"))
    cores = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}"
    system = f"{platform.system()} {platform.release()} {platform.machine()}, {cores}"
    return f"{datetime.now(UTC):%Y-%m-%d}: {system}, Python {platform.python_version()}, {versions}"
