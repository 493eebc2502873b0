"""Model servers that answer without measure, while another client pings: memory of the daemon, and its pings."""

import asyncio
import json
import time
from collections.abc import Iterator
from itertools import count
from typing import cast

import psutil

from benchmarks import rig
from tests.faults.row import Options, Row
from zotd.testing.flood_server import FLOODS
from zotd.testing.wire_client import Json, WireClient

SECONDS = 40.0
"""How long the floods go on, each after the one before."""

CALM_S = 5.0
"""How long is pinged before them."""

AT_ONCE = 2
"""Sessions that are flooded at the same time."""

RSS_MIB = 200.0
PING_MS = 50.0

PING_EVERY_S = 0.02
LOOK_S = 0.1

OVER_S = 60.0
"""How long after the last flood has begun its run may go on; one that is never over is a failure, not a wait."""


async def run(options: Options) -> Row:
    """Flood, and measure."""
    start = time.monotonic()
    with rig.place() as where:
        async with (
            rig.program("-m", "zotd.testing.flood_server", env=where.env) as server,
            rig.daemon(where) as daemon,
            WireClient.connect(rig.socket_of(where)) as pinger,
            WireClient.connect(rig.socket_of(where)) as prompter,
        ):
            assert server.stdout is not None
            url = json.loads(await server.stdout.readline())["url"]
            before = await _calm(prompter, pinger, daemon, url)
            pings, peak, floods = await _flooded(prompter, pinger, daemon, url, options)
    p50, p99 = rig.percentile(pings, 50), rig.percentile(pings, 99)
    return Row(
        check=f"{floods} floods of {len(FLOODS)} kinds from a model server, {AT_ONCE} at once: "
        "2 GiB of error, endless replies",
        must_give=f"daemon below {RSS_MIB:.0f} MiB; another client's ping p99 <= {PING_MS:.0f} ms",
        got=f"peak {peak:.0f} MiB; {len(pings):,} pings, p50 {p50:.1f} ms, p99 {p99:.1f} ms, max {max(pings):.0f} ms "
        f"(without floods p99 {rig.percentile(before, 99):.1f} ms)",
        ok=peak < RSS_MIB and p99 <= PING_MS,
        command="python -m tests.faults floods",
        seconds=time.monotonic() - start,
    )


async def _calm(prompter: WireClient, pinger: WireClient, daemon: psutil.Process, url: str) -> list[float]:
    """Milliseconds of pings while nothing goes on; before that the vendor's library is loaded, half a second of CPU."""
    session = await _prompt(prompter, url, "plain_error")
    while await _runs(prompter, session):  # noqa: ASYNC110  (nobody follows the session)
        await asyncio.sleep(LOOK_S)
    pings: list[float] = []
    await _ping(pinger, daemon, time.monotonic() + CALM_S, pings, [])
    return pings


async def _flooded(
    prompter: WireClient, pinger: WireClient, daemon: psutil.Process, url: str, options: Options
) -> tuple[list[float], float, int]:
    """Milliseconds of each ping, the most MiB that the daemon had, and how many floods there were."""
    until = time.monotonic() + SECONDS * options.share
    kinds = (name for _ in count() for name in FLOODS)
    pings: list[float] = []
    peaks: list[float] = []
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_ping(pinger, daemon, until, pings, peaks), name="pings")
        flooding = tasks.create_task(_flood(prompter, url, until, kinds, options), name="floods")
    return pings, max(peaks), flooding.result()


async def _ping(
    client: WireClient, daemon: psutil.Process, until: float, pings: list[float], peaks: list[float]
) -> None:
    while time.monotonic() < until:
        start = time.perf_counter()
        await client.ask("ping")
        pings.append((time.perf_counter() - start) * 1000)
        peaks.append(rig.rss_mib(daemon))
        await asyncio.sleep(PING_EVERY_S)


async def _flood(client: WireClient, url: str, until: float, kinds: Iterator[str], options: Options) -> int:
    """Keep so many sessions flooded; nobody follows them, so that what is measured is the daemon."""
    running: dict[str, str] = {}
    floods = 0
    while running or time.monotonic() < until:
        assert time.monotonic() < until + OVER_S, f"runs that are never over: {', '.join(running.values())}"
        while len(running) < AT_ONCE and time.monotonic() < until:
            kind = next(kinds)
            running[await _prompt(client, url, kind)] = kind
            floods += 1
        await asyncio.sleep(LOOK_S)
        for session in list(running):
            if not await _runs(client, session):
                options.say(f"{running.pop(session)} is over")
    return floods


async def _prompt(client: WireClient, url: str, kind: str) -> str:
    options = {"cwd": "/", "provider": "openai", "model": "m", "base_url": f"{url}/{kind}/v1"}
    made = await client.ask("session.create", **options, secrets={"api_key": "sk-none"})
    session = str(cast("Json", made["session"])["id"])
    await client.ask("prompt", session=session, message="go")
    return session


async def _runs(client: WireClient, session: str) -> bool:
    return bool((await client.ask("get_state", session=session))["state"] == "running")
