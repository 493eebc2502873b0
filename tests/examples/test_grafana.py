"""The dashboard for Grafana: its metrics exist, and Prometheus understands its queries."""

import asyncio
import json
import re
import sys
from contextlib import AsyncExitStack
from urllib.parse import urlsplit

import aiohttp
import pytest

from tests.e2e.conftest import House
from tests.needs import needs
from zotd.testing.live_daemon import ROOT, DaemonProcess
from zotd.testing.model_server import ModelServer
from zotd.testing.script import CallPart, calls, text
from zotd.wire.exposition import COUNTERS, GAUGES

EXAMPLES = ROOT / "examples" / "grafana"

METRIC = re.compile(r"\bzotd_\w+")

SUFFIXES = re.compile(r"_(?:total|bucket|count|sum)$")

VARIABLES = {"$instance": ".*", "$model": ".*", "$workspace": ".*", "$__rate_interval": "1m", "$__range": "1h"}
"""What Grafana puts in place of its variables."""

WAIT_S = 50.0
"""Longest wait for what a real Prometheus has read."""


def queries():
    """The queries of all panels, as Grafana sends them."""
    board = json.loads((EXAMPLES / "zot-agents.json").read_text())
    found = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    for name, value in VARIABLES.items():
        found = [query.replace(name, value) for query in found]
    return found


def choices():
    """The queries of the variables."""
    board = json.loads((EXAMPLES / "zot-agents.json").read_text())
    return [one["query"]["query"] for one in board["templating"]["list"] if one["type"] == "query"]


@pytest.fixture
async def stack():
    async with AsyncExitStack() as stack:
        yield stack


@pytest.fixture
async def house(stack, tmp_path):
    """A daemon with a WebSocket door that makes traces."""
    switches = {"ZOT_TELEMETRY_TRACES": "true", "ZOT_WEBSOCKET_LISTEN": "127.0.0.1:0"}
    daemon = stack.enter_context(DaemonProcess(tmp_path, switches))
    return House(stack, daemon.place, daemon)


@pytest.fixture
async def talk(stack, house):
    """A session that has had a run with a tool call."""
    server = await stack.enter_async_context(ModelServer([calls(CallPart("read", {"path": "a"})), text("done")]))
    talk = await house.create("openai", server, model="gpt-5.6-sol")
    await talk.run()
    return talk


async def test_every_metric_of_the_dashboard_exists(talk):
    families = (await talk.client.ask("daemon.metrics"))["families"]
    there = {one["name"] for one in families} | {f"zotd_{name}" for name, _ in (*GAUGES.values(), *COUNTERS.values())}
    named = {SUFFIXES.sub("", name) for query in [*queries(), *choices()] for name in METRIC.findall(query)}
    assert named - there == set()
    assert len(named) > 20


async def test_labels_of_the_dashboard_are_those_of_the_metrics(talk):
    families = (await talk.client.ask("daemon.metrics"))["families"]
    labels = {one["name"]: set(one["samples"][0]["labels"]) for one in families if one.get("samples")}
    for query in queries():
        for name, selector in re.findall(r"(zotd_\w+)\{([^}]*)\}", query):
            asked = set(re.findall(r"(\w+)=~?\"", selector)) - {"instance"}
            assert asked <= labels.get(SUFFIXES.sub("", name), asked), query


class Prometheus:
    """A real one, with the configuration of the example for this daemon."""

    def __init__(self, folder, house):
        self._folder = folder
        self._house = house
        self._process: asyncio.subprocess.Process | None = None
        self._url = ""

    async def __aenter__(self):
        token, address = self._folder / "zot.token", await self._address()
        command = [
            sys.executable,
            "-m",
            "zotctl",
            "token",
            "create",
            "prometheus",
            "--role",
            "read",
            "--out",
            str(token),
        ]
        creator = await asyncio.create_subprocess_exec(*command, env=self._house.place.env)
        assert await creator.wait() == 0
        text = (EXAMPLES / "prometheus.yml").read_text().replace("/etc/prometheus/zot.token", str(token))
        (self._folder / "prometheus.yml").write_text(text.replace("127.0.0.1:8765", address).replace("15s", "1s"))
        self._process = await asyncio.create_subprocess_exec(
            "prometheus",
            f"--config.file={self._folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            "--web.listen-address=127.0.0.1:0",
            "--log.format=json",
            stderr=asyncio.subprocess.PIPE,
        )
        assert self._process.stderr is not None
        said: set[str] = set()
        async for line in self._process.stderr:
            told = json.loads(line)
            said.add(told.get("msg"))
            if told.get("msg") == "Listening on":
                self._url = f"http://{told['address']}"
            if said >= {"Listening on", "Server is ready to receive web requests."}:  # in any order
                return self
        raise AssertionError(f"prometheus has ended after {said}")

    async def __aexit__(self, *_):
        assert self._process is not None
        self._process.terminate()
        await self._process.communicate()

    async def ask(self, query):
        """The result of a query; its error instead, when it is none."""
        async with aiohttp.ClientSession() as session:
            answer = await session.get(f"{self._url}/api/v1/query", params={"query": query})
            found = await answer.json()
        return found.get("error") or found["data"]["result"]

    async def until(self, query):
        """The result, as soon as there is one."""
        async with asyncio.timeout(WAIT_S):
            while not (found := await self.ask(query)):
                pass  # it has no way to tell that it has read a target
        return found

    async def _address(self):
        client = await self._house.connect()
        return urlsplit((await client.ask("daemon.status"))["websocket"]).netloc


async def test_prometheus_reads_a_daemon_and_understands_every_query(stack, tmp_path, house, talk):
    needs("prometheus")
    prometheus = await stack.enter_async_context(Prometheus(tmp_path, house))
    (requests,) = await prometheus.until("zotd_model_requests_total")
    assert (requests["metric"]["model"], requests["value"][1]) == ("gpt-5.6-sol", "2")
    assert (await prometheus.ask("up"))[0]["value"][1] == "1"
    answers = {query: await prometheus.ask(query) for query in queries()}
    assert [query for query, answer in answers.items() if isinstance(answer, str)] == []
    for query in choices():
        metric, label = chosen(query)
        assert await prometheus.ask(f"count by ({label}) ({metric})") != []


def chosen(query):
    """The metric and the label of a variable's query."""
    ((metric, label),) = re.findall(r"label_values\((\w+), (\w+)\)", query)
    return metric, label
