"""Beside each extension that misbehaves: how long another one's command takes meanwhile, and what people are told.

`python -m benchmarks.misbehaviours` prints a line for each of them, or only for those named: `... silent floods`.
"""

import asyncio
import sys
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from benchmarks import rig
from benchmarks.rig import Place, Row
from zotd.testing.misbehaviours import MISBEHAVIOURS, Misbehaviour
from zotd.testing.model_server import ModelServer
from zotd.testing.provoking import GOOD, Witness, answer, install, provoke
from zotd.testing.wire_client import WireClient

COMMANDS = 20
"""Of the good extension while the bad one misbehaves; the slowest counts."""

EVERY_S = 0.05
"""From the end of one to the start of the next."""

TARGET_MS = 100.0

LIMITS = {f"ZOT_EXT_{what}_TIMEOUT_S": "2" for what in ("TOOL", "COMMAND", "INTERCEPT")}
"""How long those wait who ask a bad one."""

SHOWN_CHARS = 110
"""Of what people are told."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one of them."""

    bad: Misbehaviour
    slowest_ms: float
    told: str


async def measure() -> list[Row]:
    """One row: the slowest of all."""
    outcomes = [await outcome(bad) for bad in MISBEHAVIOURS]
    usual = rig.median([one.slowest_ms for one in outcomes])
    worst = max(outcomes, key=lambda one: one.slowest_ms)
    late = sum(one.slowest_ms > TARGET_MS for one in outcomes)
    name = f"a command beside each of {len(outcomes)} misbehaving extensions, the slowest of {COMMANDS}, at worst"
    note = f'beside "{worst.bad.id}"; {late} are over the target' if late else f'beside "{worst.bad.id}"'
    target = f"<= {TARGET_MS:g} ms"
    return [Row(name, worst.slowest_ms, "ms", usual, "the median of them", target, not late, note=note)]


async def outcome(bad: Misbehaviour) -> Outcome:
    """Provoke one, in a daemon of its own."""
    async with AsyncExitStack() as stack:
        where = stack.enter_context(rig.place())
        place = Place(where.home, where.cwd, {**where.env, **LIMITS})
        for name, argv in (("good", GOOD), (bad.name, bad.argv)):
            install(place.home, name, argv)
        await stack.enter_async_context(rig.daemon(place))
        server = await stack.enter_async_context(ModelServer(partial(answer, bad)))
        one, other, watching = [
            await stack.enter_async_context(WireClient.connect(rig.socket_of(place))) for _ in range(3)
        ]
        await _load_sdk(place, server.openai_url)
        witness = await Witness.of(bad, watching)
        session = await _session(one, place, server.openai_url)
        await witness.until_good_is_ready(session)
        async with asyncio.TaskGroup() as tasks:
            provoked = tasks.create_task(provoke(bad, one, session), name=f"provoke {bad.id}")
            slowest_ms = max([await _command_ms(other, session) for _ in range(COMMANDS)])
        told = provoked.result()
        if bad.told not in told:
            await provoke(bad, one, session)  # what it said too much about the first time has been read by now
            told = await witness.told()
        return Outcome(bad, slowest_ms, told if bad.told else "")


async def _load_sdk(place: Place, url: str) -> None:
    """What a daemon's first prompt costs, 0.3 s of contended interpreter, is no misbehaviour."""
    async with WireClient.connect(rig.socket_of(place)) as client:
        await client.ask("prompt", session=await _session(client, place, url, no_ext=True), message="go")
        await client.until("done")


async def _session(client: WireClient, place: Place, url: str, **settings: object) -> str:
    """A session that the client follows."""
    settings |= {"cwd": str(place.cwd), "provider": "openai", "base_url": url, "ephemeral": True}
    env = {"PATH": place.env["PATH"], "HOME": place.env["HOME"]}
    made = await client.ask("session.create", **settings, secrets={"api_key": "none"}, env=env)
    info = made["session"]
    assert isinstance(info, dict)
    await client.ask("attach", session=info["id"])
    return str(info["id"])


async def _command_ms(client: WireClient, session: str) -> float:
    start = time.perf_counter()
    await client.ask("run_command", session=session, name="good", args="still here")
    taken = time.perf_counter() - start
    await asyncio.sleep(EVERY_S)
    return taken * 1000


async def main(names: Sequence[str]) -> None:
    """Print the table."""
    await rig.quiet()
    sys.stdout.write(f"{rig.machine()}\n\n| misbehaving | ms | people are told |\n|---|---|---|\n")
    for bad in MISBEHAVIOURS:
        if not names or bad.id in names:
            found = await outcome(bad)
            told = found.told.replace("|", "\\|").replace("\n", " ")[:SHOWN_CHARS]
            sys.stdout.write(f"| {bad.id} | {rig.figure(found.slowest_ms)} | {told} |\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
