"""MCP servers as extensions of the real host: supervised, with progress and cancellation, each with its own secrets."""

import asyncio
import json
import os
from contextlib import asynccontextmanager

import pytest

from tests.bridges.conftest import program
from tests.exthost.conftest import Heard, context, run
from zotd.core import supervision
from zotd.core.supervision import LATE
from zotd.exthost.discovery import Discovered
from zotd.exthost.host import Host
from zotd.exthost.mcp import servers
from zotd.exthost.surroundings import Surroundings


@pytest.fixture
def hosted(tmp_path):
    """Starts a host with these servers, and waits until this tool is there; None: does not wait."""

    @asynccontextmanager
    async def hosted(entries, tool, **withheld):
        (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": entries}))
        heard = Heard()
        host = Host(
            discover=lambda: Discovered(servers(tmp_path / "mcp.json", directory=tmp_path)[0]),
            surroundings=Surroundings(
                str(tmp_path), tmp_path / "home", {"PATH": os.environ["PATH"]}, withheld=withheld
            ),
            listener=heard,
        )
        try:
            await host.start()
            if tool is not None:
                await heard.until(lambda: tool in names(host))
            yield host, heard
        finally:
            await host.stop()

    return hosted


def names(host):
    return [tool.spec.name for tool in host.offers.tools()]


@pytest.mark.usefixtures("cold_bridge")
async def test_a_server_that_crashes_in_a_call_fails_it_and_is_back_soon(hosted):
    async with hosted({"odd": program("odd_server", "held pipe")}, "odd__hi") as (host, heard):
        is_error, text = await run(host, "odd__hi")
        assert is_error
        assert text.startswith("the MCP server was lost during the call")
        await heard.until(lambda: names(host) == [])
        await heard.until(lambda: names(host) == ["odd__hi"])
    reasons = [reason for _, state, reason in heard.states if state == "restarting"]
    assert reasons == ["exited with code 1: the MCP server odd has exited with code 5"]


async def test_a_server_that_does_not_answer_initialize_is_not_listed_as_ready(hosted, monkeypatch):
    monkeypatch.setattr(supervision, "READY_S", 1)
    async with hosted({"odd": program("odd_server", "silent")}, None) as (host, heard):
        await heard.until(lambda: [state for _, state, _ in heard.states][-1:] == ["ready"])
        (status,) = host.status()
        assert (status.state, status.reason) == ("starting", LATE)
        assert ("mcp-odd", LATE) in host.doctor()


async def test_progress_and_cancellation_reach_the_other_side(hosted):
    async with hosted({"sample": program("sample_server")}, "sample__was_cancelled") as (host, _):
        tools = {tool.spec.name: tool for tool in host.offers.tools()}
        began = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            call = group.create_task(tools["sample__endless"].run({}, context(progress=lambda _: began.set())))
            await began.wait()
            call.cancel()
            assert await run(host, "sample__was_cancelled") == (False, "yes")


async def test_a_call_outlasts_the_servers_timeout_while_it_reports_progress(hosted):
    async with hosted({"sample": program("sample_server") | {"timeout_s": 1.5}}, "sample__slowly") as (host, _):
        assert await run(host, "sample__slowly") == (False, "done")


async def test_a_call_without_progress_ends_after_the_servers_timeout(hosted):
    async with hosted({"sample": program("sample_server") | {"timeout_s": 0.3}}, "sample__endless") as (host, _):
        is_error, text = await run(host, "sample__endless")
        assert is_error
        assert "did not answer within 0.3 s" in text


async def test_a_secret_reaches_only_the_server_that_names_it(hosted):
    entries = {
        "a": {**program("sample_server"), "env": {"KEY": "${VENDOR_KEY}"}},
        "b": {**program("sample_server"), "env": {"KEY": "${VENDOR_KEY_B:-none}"}},
    }
    async with hosted(entries, "a__was_cancelled", VENDOR_KEY="t0p-secret") as (host, heard):
        await heard.until(lambda: "b__was_cancelled" in names(host))
        assert json.loads((await run(host, "a__environment"))[1])["KEY"] == "t0p-secret"
        _, everything = await run(host, "b__environment")
        assert json.loads(everything)["KEY"] == "none"
        assert "t0p-secret" not in everything


async def test_the_servers_stderr_is_in_the_extensions_log(hosted, tmp_path):
    async with hosted({"sample": program("sample_server")}, "sample__crash") as (host, heard):
        await run(host, "sample__crash")
        await heard.until(lambda: "sample__crash" not in names(host))
    assert "a word before the end" in (tmp_path / "home" / "logs" / "ext-mcp-sample.log").read_text()
