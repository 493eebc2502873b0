"""A daemon that exports traces to a collector of the test."""

from contextlib import AsyncExitStack

import pytest

from tests.e2e.conftest import House
from tests.telemetry.collector import Collector
from zotd.testing.live_daemon import DaemonProcess
from zotd.testing.model_server import ModelServer

SOON = {"OTEL_BSP_SCHEDULE_DELAY": "20"}
"""Spans are exported every 20 ms and not every 5 s."""


@pytest.fixture
async def stack():
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
async def collector(stack):
    return await stack.enter_async_context(Collector())


@pytest.fixture
async def model(stack):
    """`await model(answer, ...)`: a scripted model."""

    async def model(*answers):
        script = answers[0] if len(answers) == 1 and callable(answers[0]) else answers
        return await stack.enter_async_context(ModelServer(script))

    return model


@pytest.fixture
def results():
    """`results(request)`: the tool results that a request to the model holds, as texts."""
    return lambda received: [one["content"] for one in received.messages if one["role"] == "tool"]


@pytest.fixture
async def traced(stack, tmp_path, collector):
    """`traced(**extra)`: a daemon in a process of its own that exports to the collector."""

    def traced(url=None, **extra):
        variables = {"ZOT_TELEMETRY_TRACES": "true", **SOON, **extra}
        if url != "":  # else the variables of OpenTelemetry say where
            variables["ZOT_TELEMETRY_ENDPOINT"] = url or collector.url
        daemon = stack.enter_context(DaemonProcess(tmp_path, variables))
        return House(stack, daemon.place, daemon)

    return traced
