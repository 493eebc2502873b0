"""What traces cost: the daemon's processor time for a step, and its memory, with and without them."""

import dataclasses
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from statistics import median

from aiohttp import web
from msgspec.structs import replace

from benchmarks import model, rig
from benchmarks.rig import Row, World
from zotd.clock import rfc3339
from zotd.core import records
from zotd.core.transcript import Transcript
from zotd.ledger.ledger import Shown
from zotd.telemetry.finished import FinishedSpan
from zotd.telemetry.ids import TraceParent
from zotd.telemetry.spans import SessionSpans
from zotd.wire import events
from zotd.wire.content import Tokens

STEPS = 400

ROUNDS = 12

PLAN = f"call/read/{STEPS}"

WAYS: Mapping[str, Mapping[str, str]] = {
    "off": {},
    "on": {"ZOT_TELEMETRY_TRACES": "true"},
    "with content": {"ZOT_TELEMETRY_TRACES": "true", "ZOT_TELEMETRY_CONTENT": "true"},
}

LOOP_TARGET_US = 50.0
"""What the event loop may spend on the spans of a step; the rest is done in a thread, between steps."""


async def measure() -> list[Row]:
    """Rows for each way."""
    async with AsyncExitStack() as stack:
        collector = await stack.enter_async_context(_collector())
        worlds = {way: await stack.enter_async_context(_world(extra, collector)) for way, extra in WAYS.items()}
        before = {way: rig.rss_mib(world.daemon) for way, world in worlds.items()}
        taken = await rig.in_turns(ROUNDS, {way: _probe(world) for way, world in worlds.items()}, warm_up=1)
    off, loop = median(taken["off"]), median(_derive_us() for _ in range(ROUNDS))
    steps = {way: median(taken[way]) for way in WAYS if way != "off"}
    return [
        Row(
            "spans of a step, on the event loop",
            loop,
            "us",
            None,
            "",
            f"<= {LOOP_TARGET_US:g} us",
            loop <= LOOP_TARGET_US,
        ),
        Row("processor time of a step, traces off", off, "us", None, "", "", None),
        *(
            Row(f"processor time of a step, traces {way}", us, "us", off, "traces off", "", None)
            for way, us in steps.items()
        ),
        *(Row(f"memory of the idle daemon, traces {way}", before[way], "MiB", None, "", "", None) for way in WAYS),
    ]


class _Sink:
    def put(self, span: FinishedSpan) -> None:
        del span

    def is_sampled(self, trace_id: int, parent: TraceParent | None) -> bool:
        del trace_id, parent
        return True


def _derive_us() -> float:
    """Microseconds to derive the spans of a step from its records: a request and a tool call."""
    spans = SessionSpans(
        "s_1",
        "/",
        _Sink(),
        environment=dict,
        transcript=Transcript,
        has_content=False,
    )
    commits = [commit for number in range(STEPS) for commit in _step(number)]
    before = time.process_time()
    for commit in commits:
        spans.committed(commit)
    return (time.process_time() - before) / STEPS * 1e6


def _step(number: int) -> Iterator[Sequence[Shown]]:
    now, run, vendor, name = rfc3339(), "r_1", "openai", "m"
    read = records.CallResult(
        time=now, run=run, call_id=f"c_{number}", name="read", is_error=False, content=[], took_s=0.001
    )
    attempt = records.Attempt(time=now, run=run, step=number, number=1, provider=vendor, model=name)
    yield [Shown(read, [events.ToolResultEvent(read.call_id, False, [])]), Shown(attempt, [events.TurnStart(number)])]
    yield [Shown(replace(attempt, answered=True), [events.AssistantStart()])]
    row = records.UsageRow(
        time=now, run=run, step=number, provider=vendor, model=name, tokens=Tokens(10, 5), took_s=0.01, first_s=0.005
    )
    reply = records.Reply(time=now, run=run, step=number, content=[], stop="tool_use")
    yield [Shown(row), Shown(reply, [events.TurnEnd("tool_use")])]


def _probe(world: World) -> rig.Probe:
    async def probe() -> float:
        session = await world.session("openai", PLAN)
        before = rig.cpu_s(world.daemon)
        await rig.finish(session)
        return (rig.cpu_s(world.daemon) - before) / STEPS * 1e6

    return probe


@asynccontextmanager
async def _world(extra: Mapping[str, str], collector: str) -> AsyncIterator[World]:
    with rig.place() as where:
        there = dataclasses.replace(where, env={**where.env, **extra, "OTEL_EXPORTER_OTLP_ENDPOINT": collector})
        (there.cwd / "note.txt").write_text(model.NOTE)
        async with rig.model(there) as url, rig.daemon(there) as process, rig.connect(there) as client:
            yield World(there, process, url, client)


@asynccontextmanager
async def _collector() -> AsyncIterator[str]:
    """The URL of a collector that takes everything."""

    async def take(request: web.Request) -> web.Response:
        await request.read()
        return web.Response(content_type="application/x-protobuf")

    app = web.Application(client_max_size=64 * 1024 * 1024)
    app.router.add_post("/v1/traces", take)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        yield f"http://{host}:{port}"
    finally:
        await runner.cleanup()


if __name__ == "__main__":
    rig.run(measure)
