"""One step of a run, the model's reply and a `read` of a small file: at the 20th and at the 200th call.

And 200 such steps of `zot rpc`: their time, and the processor time of the program.
"""

import time
from contextlib import closing
from itertools import pairwise

from benchmarks import floors, model, rig
from benchmarks.rig import Row, World
from benchmarks.rpc import Rpc
from zotd.client.session import Session
from zotd.wire.events import TurnStart

STEPS = 210

AT = (20, 200)

AROUND = 10
"""Steps before and after that are looked at: one alone says nothing on a busy machine."""

RUNS = 5

STEP_BYTES = 400
"""About what a step adds to the request."""

TARGET_MS = 3.0

FLAT = 1.25
"""What a later step may take, as a part of an earlier one, before it counts as growth."""

PLAN = f"call/read/{STEPS}"

RPC_STEPS = 200

RPC_EDGE = 20
"""Steps at the beginning and at the end that are looked at."""

RPC_CPU_MS = 300.0

RPC_FIRST_MS = 1.5

RPC_LAST_MS = 2.0


async def measure() -> list[Row]:
    """Rows for each vendor, for ephemeral and stored sessions."""
    rows: list[Row] = []
    async with rig.world() as world:
        (world.place.cwd / "note.txt").write_text(model.NOTE)
        for vendor in rig.VENDORS:
            rows += await _vendor(world, vendor)
            rows += await _rpc(world, vendor)
    return rows


async def _vendor(world: World, vendor: str) -> list[Row]:
    plain: list[list[float]] = []
    stored: list[list[float]] = []
    replies: dict[int, list[float]] = {at: [] for at in AT}
    commits: list[float] = []
    syncs: list[float] = []
    with (
        closing(floors.Http(world.model, vendor, "call/read/1")) as http,
        closing(floors.Disk(world.place.home)) as disk,
    ):
        for _ in range(RUNS):
            for at, samples in replies.items():
                size = floors.PREAMBLE_BYTES + at * STEP_BYTES
                samples += [http.read(size)[1] * 1000 for _ in range(2 * AROUND)]
            plain.append(await steps_ms(await world.session(vendor, PLAN)))
            commits += [disk.commit() * 1000 for _ in range(2 * AROUND)]
            syncs += [disk.sync() * 1000 for _ in range(2 * AROUND)]
            stored.append(await steps_ms(await world.session(vendor, PLAN, stored=True)))
    early, kept = _medians(plain), _medians(stored)
    least = rig.percentile([ms for run in plain for ms in run], 10)
    commit, sync = rig.median(commits), rig.median(syncs)
    return [
        *_plain_rows(vendor, early, {at: rig.median(samples) for at, samples in replies.items()}, least=least),
        *(
            rig.stored_row(f"step {at} of a run, {vendor}: more when it is stored", kept[at] - early[at], commit, sync)
            for at in AT
        ),
    ]


async def _rpc(world: World, vendor: str) -> list[Row]:
    url = rig.base_url(world.model, vendor, f"call/read/{RPC_STEPS}")
    flags = ["--provider", vendor, "--base-url", url, "--api-key", "none", "--cwd", str(world.place.cwd)]
    first: list[float] = []
    last: list[float] = []
    cpu: list[float] = []
    async with Rpc.start(world.place.env, flags) as program:
        for number in range(1 + RUNS):
            before = rig.cpu_s(program.process)
            await program.send(type="prompt", message="go")
            starts = await program.until("done", timing="turn_start")
            steps = [(later - earlier) * 1000 for earlier, later in pairwise(starts)]
            if number > 0:  # the first one loads the vendor's SDK
                cpu.append((rig.cpu_s(program.process) - before) * 1000)
                first += steps[:RPC_EDGE]
                last += steps[-RPC_EDGE:]
            await program.send(type="clear")
            await program.until("response")
        await program.end()
    name = f"{RPC_STEPS} steps of `zot rpc`, {vendor}"
    taken = (
        (f"{name}: processor time", rig.median(cpu), RPC_CPU_MS, 290.0),
        (f"{name}: a step of the first {RPC_EDGE}", rig.median(first), RPC_FIRST_MS, 1.3),
        (f"{name}: a step of the last {RPC_EDGE}", rig.median(last), RPC_LAST_MS, 3.4),
    )
    return [
        Row(what, ms, "ms", original, "the original", f"<= {target:g} ms", ms <= target)
        for what, ms, target, original in taken
    ]


def _medians(runs: list[list[float]]) -> dict[int, float]:
    """Milliseconds of a step at each place of `AT`."""
    return {at: rig.median([ms for run in runs for ms in run[at - AROUND : at + AROUND]]) for at in AT}


async def steps_ms(session: Session) -> list[float]:
    """Milliseconds of each of the `STEPS` steps of a run; the session's model follows `PLAN`."""
    starts: list[float] = []
    async for batch in session.prompt_batches("go"):
        now = time.perf_counter()
        starts.extend(now for event in batch if type(event) is TurnStart)
    if len(starts) != STEPS + 1:
        raise RuntimeError(f"the run had {len(starts)} steps, not {STEPS + 1}")
    return [(later - earlier) * 1000 for earlier, later in pairwise(starts)]


def _plain_rows(vendor: str, plain: dict[int, float], floor: dict[int, float], *, least: float) -> list[Row]:
    growth = plain[AT[1]] / plain[AT[0]]
    return [
        Row(
            f"step {at} of a run, {vendor}",
            plain[at],
            "ms",
            floor[at],
            "direct HTTP read",
            f"<= {TARGET_MS:g} ms, flat",
            plain[at] <= TARGET_MS and growth <= FLAT,
            note=f"{growth:.2f} times step {AT[0]}" if at == AT[1] else f"the fastest tenth of all {least:.2g}",
        )
        for at in AT
    ]


if __name__ == "__main__":
    rig.run(measure)
