"""The terminal client as a person has it: keys until they are drawn, the first paint, the processor, memory."""

import random
import string
import sys
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, closing

from benchmarks import floors, history, rig
from benchmarks.model import FIRST, LAST
from benchmarks.rig import Place, Row, World
from benchmarks.terminal import Terminal

KEYS = 200
"""Each measurement of keys takes so many, at moments that nothing else keeps time with."""

LEAST_PAUSE_S, MOST_PAUSE_S = 0.03, 0.09
"""Seconds between two keys of a fast typist."""

RATE = 300
"""Deltas in a second: faster than models write."""

TYPING = f"text/{RATE}/9000/prose"
"""Longer than it takes to type the keys."""

SPEAKING_RATE = 60
SPEAKING = f"text/{SPEAKING_RATE}/9000/prose"
"""As fast as a model writes."""

THIN_BYTES_S = 4_000
THIN_LEAD_S = 5.0
"""Seconds of output before the first key."""
THIN_TARGET_MS = 500

FENCE_LINES = 400
DELTAS_A_LINE = 8
FENCE = f"text/{RATE}/{FENCE_LINES * DELTAS_A_LINE}/fence"

BURST_DELTAS = 5000
BURST = f"text/1000000/{BURST_DELTAS}/prose"

MESSAGES = 50_000

IDLE_S = 10.0

SETTLE_S = 1.0
"""After the first paint, and after a run: what is asked of the daemon then has been answered."""

ROUNDS = 15

KEY_TARGET_MS = 15.0
IDLE_TARGET = 0.2
"""Percent of a core: the kernel counts steps of 10 ms."""
RSS_TARGET_MIB = 120.0
PAINT_TARGET = 1.6
BURST_TARGET_S = 0.5
SAME = 1.5
"""So many times another figure still is the same as that, on a machine that others use."""

PROMPT = "❯"
"""As the client draws it."""

NEEDLE_CHARS = 4
"""The last letters that were typed: a row is drawn whole, and no other text has them in this order."""

BARE = """
from prompt_toolkit import PromptSession
PromptSession("> ").prompt()
"""
"""What a key costs with prompt_toolkit alone."""


async def measure() -> list[Row]:
    """All rows."""
    rows: list[Row] = []
    for part in (_keys, _thin, _paint, _burst, _fence):
        async with (
            rig.world() as world
        ):  # for each its own: typing blocks, and the daemon cuts clients that do not read
            rows += await part(world)
    return [*rows, *await _long()]


# --- keys ---------------------------------------------------------------------------------------------------------


async def _keys(world: World) -> list[Row]:
    async with _shown(world, TYPING) as terminal:
        with closing(Terminal(sys.executable, "-c", BARE, env=world.place.env)) as alone:
            alone.wait(">")
            alone.look(SETTLE_S)
            bare, idle = _typed({alone: 1, terminal: NEEDLE_CHARS})
        before = rig.cpu_s(terminal.process)
        terminal.type("\x15go\r")
        terminal.wait(FIRST.strip())
        (busy,) = _typed({terminal: NEEDLE_CHARS})
        spent = f"the client took {rig.cpu_s(terminal.process) - before:.1f} s of processor"
        terminal.type("\x1b")  # interrupts
        terminal.wait("interrupted")
        terminal.look(SETTLE_S)
        rest = terminal.cpu_percent(IDLE_S)
    return [
        *_latencies("key to screen, idle", idle, bare),
        *_latencies(f"key to screen, {RATE} deltas/s", busy, bare, note=spent),
        Row(f"processor of an idle client, {IDLE_S:g} s", rest, "% of a core", None, "", "0 %", rest <= IDLE_TARGET),
    ]


def _typed(terminals: Mapping[Terminal, int]) -> list[list[float]]:
    """Seconds from each key to the screen, typed in turns; with each, how many of the last letters it draws at least."""
    taken: dict[Terminal, list[float]] = {terminal: [] for terminal in terminals}
    while any(len(seconds) < KEYS for seconds in taken.values()):
        for terminal, drawn in terminals.items():
            taken[terminal] += _alphabet(terminal, drawn)
    return list(taken.values())


def _alphabet(terminal: Terminal, drawn: int) -> Iterator[float]:
    """A line of letters: seconds from each to the screen."""
    letters = string.ascii_lowercase
    terminal.type("\x15")  # Ctrl-U empties the line
    terminal.look(MOST_PAUSE_S)
    terminal.type(letters[: NEEDLE_CHARS - 1])
    for index in range(NEEDLE_CHARS, len(letters) + 1):
        terminal.look(random.uniform(LEAST_PAUSE_S, MOST_PAUSE_S))  # noqa: S311  (no secret)
        start = terminal.type(letters[index - 1])
        yield terminal.wait(letters[index - drawn : index]) - start


def _latencies(name: str, taken: Sequence[float], bare: Sequence[float], *, note: str = "") -> list[Row]:
    return [
        _latency(f"{name}: {said}", rig.percentile(taken, percent), rig.percentile(bare, percent), note=note)
        for percent, said in ((50, "half of them"), (99, "99 %"))
    ]


def _latency(name: str, seconds: float, bare: float, *, note: str) -> Row:
    ms = seconds * 1000
    target = f"<= {KEY_TARGET_MS:g} ms"
    return Row(name, ms, "ms", bare * 1000, "prompt_toolkit alone", target, ms <= KEY_TARGET_MS, note=note)


# --- the first paint ----------------------------------------------------------------------------------------------


async def _thin(world: World) -> list[Row]:
    """Keys behind a line of 4 KB/s while the model writes."""
    async with _shown(world, SPEAKING, bytes_s=THIN_BYTES_S) as terminal:
        terminal.look(2 * SETTLE_S)
        terminal.type("go\r")
        terminal.wait(FIRST.strip())
        terminal.look(THIN_LEAD_S)
        taken: list[float] = []
        for letters in (string.ascii_lowercase, string.ascii_uppercase):
            terminal.type(letters[: NEEDLE_CHARS - 1])
            for index in range(NEEDLE_CHARS, len(letters) // 2 + 1):
                terminal.look(random.uniform(0.2, 0.6))  # noqa: S311  (no secret)
                start = terminal.type(letters[index - 1])
                taken.append(terminal.wait(letters[index - NEEDLE_CHARS : index]) - start)
        start = terminal.type("\x1b")  # interrupts
        esc_ms = (terminal.wait("interrupted") - start) * 1000
        terminal.look(SETTLE_S)
    name = f"key to screen, {SPEAKING_RATE} deltas/s behind a line of {THIN_BYTES_S / 1000:g} KB/s"
    note = f"the slowest of {len(taken)}: {max(taken) * 1000:.0f} ms; esc: {esc_ms:.0f} ms"
    half = rig.median(taken) * 1000
    return [Row(f"{name}: half of them", half, "ms", None, "", f"<= {THIN_TARGET_MS} ms", half <= THIN_TARGET_MS, note)]


async def _paint(world: World) -> list[Row]:
    await world.session("anthropic", TYPING, stored=True)
    command = _command("--continue", "--cwd", str(world.place.cwd))
    lost: list[int] = []

    async def imported() -> float:
        return floors.spawn(sys.executable, "-c", "import prompt_toolkit")

    async def paint() -> float:
        with closing(Terminal(*command, env=world.place.env)) as terminal:
            return terminal.wait(PROMPT) - terminal.started

    async def typing() -> float:
        lost.append(_lost(command, world.place.env))
        return 0.0

    taken = await rig.in_turns(ROUNDS, {"import": imported, "paint": paint, "typing": typing})
    ms = {name: rig.median(samples) * 1000 for name, samples in taken.items()}
    ratio, least = ms["paint"] / ms["import"], min(taken["paint"]) / min(taken["import"])
    return [
        Row(
            "first paint of `zot`, from exec to the prompt",
            ms["paint"],
            "ms",
            ms["import"],
            "`python -c 'import prompt_toolkit'`",
            f"<= {PAINT_TARGET:g} x",
            ratio <= PAINT_TARGET,
            note=f"the fastest of each: {least:.2f}x",
        ),
        Row(f"keys typed before it that are lost, {len(lost)} times", sum(lost), "keys", None, "", "0", not sum(lost)),
    ]


def _lost(command: Sequence[str], env: Mapping[str, str]) -> int:
    """How many of the letters that are typed from the exec on are not in the editor, in their places."""
    with closing(Terminal(*command, env=env)) as terminal:
        letters = list(string.ascii_lowercase)
        for letter in letters:
            terminal.send(letter)
            terminal.look(0.01)
        terminal.wait(PROMPT)
        terminal.type("!")
        terminal.wait("!")
        terminal.look(0.1)
        editor = terminal.drawn.rpartition(PROMPT)[2].partition("!")[0].strip()
        return sum(there != letter for there, letter in zip(editor.ljust(len(letters)), letters, strict=False))


# --- streams ------------------------------------------------------------------------------------------------------


async def _burst(world: World) -> list[Row]:
    taken: list[float] = []
    async with _shown(world, BURST) as terminal:
        for _ in range(5):
            terminal.type("go\r")
            start = terminal.wait(FIRST.strip())
            taken.append(terminal.wait(LAST) - start)
            terminal.look(0.5)
    seconds = rig.median(taken)
    name = f"{BURST_DELTAS:,} deltas as fast as they come: from the first to the last on the screen"
    return [Row(name, seconds, "s", None, "", f"<= {BURST_TARGET_S:g} s", seconds <= BURST_TARGET_S)]


async def _fence(world: World) -> list[Row]:
    async with _shown(world, FENCE) as terminal:
        before = rig.cpu_s(terminal.process)
        terminal.type("go\r")
        start = terminal.wait(FIRST.strip())
        taken = terminal.wait(LAST) - start
        percent = (rig.cpu_s(terminal.process) - before) / taken * 100
    name = f"processor of the client for a fence of {FENCE_LINES} lines, {RATE} deltas/s"
    return [Row(name, percent, "% of a core", None, "", "", None, note=f"for {taken:.1f} s")]


# --- a long session -----------------------------------------------------------------------------------------------


async def _long() -> list[Row]:
    async with _stored(2) as short, _stored(MESSAGES) as long:
        keys = _typed({short: NEEDLE_CHARS, long: NEEDLE_CHARS})
        least, most = (rig.rss_mib(terminal.process) for terminal in (short, long))
    short_ms, long_ms = (rig.median(taken) * 1000 for taken in keys)
    name, beside = f"session of {MESSAGES:,} messages", "a session of 2 messages"
    return [
        Row(
            f"{name}: memory of the client",
            most,
            "MiB",
            least,
            beside,
            f"< {RSS_TARGET_MIB:g} MiB",
            most < RSS_TARGET_MIB,
        ),
        Row(f"{name}: key to screen", long_ms, "ms", short_ms, beside, "the same", long_ms <= SAME * short_ms),
    ]


@asynccontextmanager
async def _stored(messages: int) -> AsyncIterator[Terminal]:
    """`zot` on a session of so many messages."""
    with rig.place() as where:
        (session,) = await history.write(where.home, where.cwd, sessions=1, messages=messages)
        async with rig.daemon(where), AsyncExitStack() as stack:
            yield stack.enter_context(closing(_zot(where, session)))


@asynccontextmanager
async def _shown(world: World, plan: str, *, bytes_s: int | None = None) -> AsyncIterator[Terminal]:
    """`zot` on a session whose model follows `plan`."""
    session = await world.session("anthropic", plan, stored=True)
    async with AsyncExitStack() as stack:
        yield stack.enter_context(closing(_zot(world.place, session.id, bytes_s)))


def _zot(where: Place, session: str, bytes_s: int | None = None) -> Terminal:
    terminal = Terminal(*_command("--session", session), env=where.env, bytes_s=bytes_s)
    terminal.wait(PROMPT)
    terminal.look(SETTLE_S)
    return terminal


def _command(*arguments: str) -> list[str]:
    return rig.installed("zot", *arguments)


if __name__ == "__main__":
    rig.run(measure)
