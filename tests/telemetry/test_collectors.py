"""Collectors that are gone, slow or refuse: they cost spans, and never a run."""

import asyncio
import socket
import subprocess
import sys

import pytest

from zotd.embed.session_runtime import Runtime
from zotd.telemetry.content import MAX_CHARS
from zotd.telemetry.export import BATCH_CHARS
from zotd.testing.live_daemon import place
from zotd.testing.script import text

FEW = {"OTEL_BSP_MAX_QUEUE_SIZE": "4", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "2"}


@pytest.fixture
def nowhere():
    """A URL at which nothing listens."""
    with socket.socket() as taken:  # bound and not listening: a connection is refused, and no one else gets the port
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


@pytest.fixture
def runs(model):
    """`runs(house, n)`: a session that has had `n` runs."""

    async def runs(house, count):
        talk = await house.create("openai", await model(*[text("hi")] * count))
        for _ in range(count):
            assert (await talk.run())[-1]["type"] == "done"
        return talk

    return runs


async def spans_by_outcome(client):
    found = await client.ask("daemon.metrics")
    (family,) = [one for one in found["families"] if one["name"] == "zotd_telemetry_spans"]
    return {one["labels"]["outcome"]: one["value"] for one in family["samples"]}


async def warnings_about(client, word):
    return [one for one in (await client.ask("daemon.status"))["warnings"] if word in one]


async def test_a_collector_that_is_gone_costs_spans_and_is_reported(traced, runs, nowhere):
    house = traced(nowhere, OTEL_EXPORTER_OTLP_TIMEOUT="0.2")
    talk = await runs(house, 3)
    told: list[str] = []
    while not told:
        told = await warnings_about(talk.client, "does not take traces")
    assert nowhere in told[0]
    assert (await spans_by_outcome(talk.client))["exported"] == 0
    await asyncio.to_thread(house.daemon.end)  # the collector answers meanwhile


async def test_a_collector_that_never_answers_delays_neither_runs_nor_the_end(traced, runs, collector):
    collector.gate.clear()
    house = traced(**FEW)
    talk = await runs(house, 1)
    await collector.requests(1)
    await runs(house, 6)
    counted = await spans_by_outcome(talk.client)
    assert counted["exported"] == 0
    assert counted["dropped"] > 0
    assert await asyncio.to_thread(house.daemon.end) == 0
    assert "did not take the last spans" in house.daemon.log


RUNS = 20
"""Enough that what was said in them fills more than one request."""


async def test_much_content_is_sent_in_several_requests_and_does_not_pile_up(traced, model, collector):
    house = traced(ZOT_TELEMETRY_CONTENT="true", OTEL_BSP_SCHEDULE_DELAY="600000")
    long = "x" * MAX_CHARS
    talk = await house.create("openai", await model(*[text(long)] * RUNS))
    for _ in range(RUNS):
        await talk.run(long)
    await asyncio.to_thread(house.daemon.end)  # the collector answers meanwhile
    await collector.until("invoke_agent", RUNS)
    assert len(collector.bodies) > 1
    assert max(map(len, collector.bodies)) < BATCH_CHARS + 3 * MAX_CHARS


async def test_a_refused_request_is_counted_and_the_next_one_is_tried(traced, runs, collector):
    collector.status = 400
    house = traced()
    talk = await runs(house, 1)
    while not await warnings_about(talk.client, "does not take traces"):
        pass
    assert (await spans_by_outcome(talk.client))["dropped"] == 2
    collector.status = 200
    await runs(house, 1)
    await collector.until("invoke_agent")
    while (await spans_by_outcome(talk.client))["exported"] < 2:
        pass
    assert await warnings_about(talk.client, "does not take traces") == []


async def test_spans_that_wait_are_exported_when_the_daemon_stops(traced, runs, collector):
    house = traced(OTEL_BSP_SCHEDULE_DELAY="600000")
    await runs(house, 1)
    assert collector.bodies == []
    await asyncio.to_thread(house.daemon.end)  # the collector answers meanwhile
    await collector.until("invoke_agent")


HIDDEN = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
from zotd.config import TelemetrySection
from zotd.telemetry.watching import Telemetry
for traces in (True, False):
    print(Telemetry.opened(TelemetrySection(traces=traces)).problems())
"""
"""As where the extra is not installed."""


def test_without_the_extra_there_are_no_traces_and_a_sentence_says_what_to_install():
    said = subprocess.run([sys.executable, "-c", HIDDEN], capture_output=True, text=True, check=True, timeout=60).stdout
    wanted, unwanted = said.splitlines()
    assert "pip install 'zotd[otel]'" in wanted
    assert unwanted == "[]"


async def test_a_variable_that_cannot_be_used_is_reported_and_the_daemon_serves(traced, runs):
    house = traced(OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT="many")
    talk = await runs(house, 1)
    assert await warnings_about(talk.client, "no traces are made") != []


async def test_a_program_of_its_own_exports_too(collector, model, tmp_path, monkeypatch):
    monkeypatch.setenv("OTEL_SERVICE_NAME", "my-program")
    where = place(tmp_path, {"ZOT_TELEMETRY_TRACES": "true", "ZOT_TELEMETRY_ENDPOINT": collector.url})
    server = await model(text("hi"))
    options = {"cwd": str(where.cwd), "provider": "openai", "base_url": server.openai_url, "api_key": "k", "model": "m"}
    async with Runtime.open(options, env=where.env) as runtime:
        async for _ in runtime.prompt("go"):
            pass
    assert {one.name for one in collector.spans} == {"invoke_agent zot", "chat m"}
    assert collector.resources[0]["service.name"] == "my-program"


async def test_variables_of_opentelemetry_choose_collector_headers_and_names(traced, runs, collector, tmp_path):
    house = traced(
        "",
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
        OTEL_EXPORTER_OTLP_HEADERS="authorization=Bearer%20key",
        OTEL_SERVICE_NAME="my-agents",
        OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=test",
    )
    await runs(house, 1)
    await collector.until("invoke_agent")
    assert collector.headers[0]["Authorization"] == "Bearer key"
    assert collector.resources[0]["service.name"] == "my-agents"
    assert collector.resources[0]["deployment.environment.name"] == "test"
