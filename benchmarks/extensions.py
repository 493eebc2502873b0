"""Calls to an extension written in Python: at the host alone, and in a session, as its client sees them."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import closing
from functools import partial

from benchmarks import extensions_rig, floors, model, rig
from benchmarks.extensions_rig import call
from benchmarks.rig import Probe, Row, World
from zotd.client.session import Session
from zotd.exthost.tools import ExtensionTool
from zotd.wire.events import ToolCallEvent, ToolResultEvent

ROUNDS = 15

BLOCK = 100
"""Calls one after the other in a turn: what comes right after another program's turn has cold caches."""

BURST = 3_200
"""Calls of a turn when they are side by side."""

BESIDE = 32
"""Calls that are open at a time."""

NAPS = len(model.CALLS["naps"])

NAP_MS = 100.0

SOURCE = f'''
import asyncio

@ext.tool
def echo(text: str) -> str:
    """Says it again."""
    return text

@ext.tool
async def co_echo(text: str) -> str:
    """Says it again."""
    return text

@ext.tool
async def nap() -> str:
    """Takes a while."""
    await asyncio.sleep({NAP_MS / 1000})
    return "slept"
'''

TARGET_MS = 0.25

CHECKPOINT_TARGET_MS = 30.0

TARGET_PER_S = 5_000.0

NAPS_TARGET_MS = 110.0

FLOOR = "a bare pipe to a Python program that echoes lines"


async def measure() -> list[Row]:
    """Rows for the host, then for a session."""
    return [*await _at_the_host(), *await _in_a_session()]


async def _at_the_host() -> list[Row]:
    plain: list[float] = []
    coroutine: list[float] = []
    with rig.place() as place, closing(floors.Pipe()) as pipe:
        extensions_rig.write(place, "echo", SOURCE)
        async with extensions_rig.hosting(place) as host:
            echo, co_echo = (extensions_rig.tool(host, name) for name in ("echo", "co_echo"))
            taken = await rig.in_turns(
                ROUNDS,
                {
                    "bare": _trip(pipe),
                    "plain": partial(_one_by_one, echo, plain),
                    "coroutine": partial(_one_by_one, co_echo, coroutine),
                    "bare beside": _beside(pipe),
                    "beside": partial(_side_by_side, echo),
                },
            )
    return [
        _latency("call of a Python extension to its result, at the host: a function", plain, taken["bare"]),
        _latency("the same, a coroutine", coroutine, taken["bare"]),
        _rate(f"calls of a Python extension, {BESIDE} at a time, at the host", taken, target=TARGET_PER_S),
    ]


async def _in_a_session() -> list[Row]:
    each: list[float] = []
    recorded_each: list[float] = []
    async with rig.world(checkpoints=False) as world, rig.world() as recorded:
        extensions_rig.write(world.place, "echo", SOURCE)
        extensions_rig.write(recorded.place, "echo", SOURCE)
        with closing(floors.Pipe()) as pipe:
            taken = await rig.in_turns(
                ROUNDS,
                {
                    "bare": _trip(pipe),
                    "one": partial(_run_of_calls, world, each),
                    "recorded": partial(_run_of_calls, recorded, recorded_each),
                    "bare beside": _beside(pipe),
                    "beside": partial(_step_of_calls, world, "echoes"),
                    "nap": _nap,
                    "naps": partial(_step_of_calls, world, "naps"),
                },
            )
    naps, nap = (rig.median(taken[name]) * 1000 for name in ("naps", "nap"))
    target = f"<= {NAPS_TARGET_MS:g} ms"
    return [
        _latency("call of a Python extension to its result, in a session", each, taken["bare"]),
        _latency(
            "the same, with a checkpoint of an unchanged directory before it",
            recorded_each,
            taken["bare"],
            CHECKPOINT_TARGET_MS,
        ),
        _rate(f"calls of a Python extension, {BESIDE} in one step of a session", taken),
        Row(f"{NAPS} calls of {NAP_MS:g} ms in one step", naps, "ms", nap, "one timer", target, naps <= NAPS_TARGET_MS),
    ]


# --- probes: seconds ----------------------------------------------------------------------------------------------


def _trip(pipe: floors.Pipe) -> Probe:
    async def trip() -> float:
        return rig.median([pipe.trip() for _ in range(BLOCK)])

    return trip


def _beside(pipe: floors.Pipe) -> Probe:
    """For each line, when many are on their way."""

    async def beside() -> float:
        return rig.median([pipe.trip(BESIDE) / BESIDE for _ in range(BURST // BESIDE)])

    return beside


async def _one_by_one(echo: ExtensionTool, each: list[float]) -> float:
    samples: list[float] = []
    for _ in range(BLOCK):
        start = time.perf_counter()
        await call(echo, text=floors.Pipe.WORD)
        samples.append(time.perf_counter() - start)
    each += samples
    return rig.median(samples)


async def _side_by_side(echo: ExtensionTool) -> float:
    """For each call."""

    async def lane() -> None:
        for _ in range(BURST // BESIDE):
            await call(echo, text=floors.Pipe.WORD)

    start = time.perf_counter()
    async with asyncio.TaskGroup() as lanes:
        for number in range(BESIDE):
            lanes.create_task(lane(), name=f"lane {number}")
    return (time.perf_counter() - start) / BURST


async def _run_of_calls(world: World, each: list[float]) -> float:
    """A run of as many steps, each with one call."""
    session = await world.session("anthropic", f"call/echo/{BLOCK}")
    samples = await _answers(session)
    await session.close()
    if len(samples) != BLOCK:
        raise RuntimeError(f"{len(samples)} of {BLOCK} calls had a result")
    each += samples
    return rig.median(samples)


async def _step_of_calls(world: World, what: str) -> float:
    """For each call of the step; of naps, for all."""
    session = await world.session("anthropic", f"call/{what}/1")
    samples = await _answers(session)
    await session.close()
    return max(samples) / (BESIDE if what == "echoes" else 1)


async def _answers(session: Session) -> list[float]:
    """From each call of a run to its result."""
    started: dict[str, float] = {}
    taken: list[float] = []
    async for batch in session.prompt_batches("go"):
        now = time.perf_counter()
        started |= {event.id: now for event in batch if isinstance(event, ToolCallEvent)}
        results = [event for event in batch if isinstance(event, ToolResultEvent)]
        taken += [now - started.pop(event.id) for event in results]
        failed = [event.content for event in results if event.is_error]
        if failed:
            raise RuntimeError(f"a call failed: {failed[0]}")
    return taken


async def _nap() -> float:
    start = time.perf_counter()
    await asyncio.sleep(NAP_MS / 1000)
    return time.perf_counter() - start


# --- rows ---------------------------------------------------------------------------------------------------------


def _latency(measure: str, each: Sequence[float], floor: Sequence[float], limit_ms: float = TARGET_MS) -> Row:
    ms = rig.median(each) * 1000
    note = f"99 % within {rig.figure(rig.percentile(each, 99) * 1000)} ms"
    target = f"<= {limit_ms:g} ms"
    return Row(measure, ms, "ms", rig.median(floor) * 1000, FLOOR, target, ms <= limit_ms, note=note)


def _rate(measure: str, taken: dict[str, list[float]], *, target: float | None = None) -> Row:
    rate, floor = (1 / rig.median(taken[name]) for name in ("beside", "bare beside"))
    said = f">= {target:,.0f}/s" if target else ""
    return Row(measure, rate, "/s", floor, FLOOR, said, rate >= target if target else None)


if __name__ == "__main__":
    rig.run(measure)
