"""When MCP servers of clients come and go; none is started here."""

import asyncio

import pytest

from tests.sessions.test_extension_pool import extension_pool, session
from zotd.sessions.client_servers import FOLDER, LEFT_S
from zotd.wire.errors import CommandError
from zotd.wire.mcp import McpServer

__all__ = ["extension_pool", "session"]

A = {"a": McpServer(command="/bin/true", disabled=True)}
B = {"b": McpServer(command="/bin/true", disabled=True)}


@pytest.fixture
def files(tmp_path):
    """The names of the files that there are, without the digest."""
    return lambda: sorted(file.name for file in (tmp_path / "home" / FOLDER).iterdir())


async def names(extension_pool, one):
    """The servers of a session."""
    found = []
    for layer in extension_pool.client_servers.layers:
        await layer.started.wait()
        found += [manifest.name for manifest in layer.host.discovered.disabled if one.id in layer.views]
    return sorted(set(found))


@pytest.mark.looptime
async def test_servers_come_and_go_with_their_client(extension_pool, session, files):
    one = session("s_1")
    extension_pool.join(one)
    await extension_pool.client_servers.bring(one, "k_1", A)
    await extension_pool.client_servers.bring(one, "k_2", {**A, **B})
    assert await names(extension_pool, one) == ["mcp-a", "mcp-b"]
    extension_pool.client_servers.left(one.id, "k_1")
    await asyncio.sleep(LEFT_S - 1)
    assert len(files()) == 2
    await asyncio.sleep(2)
    assert len(files()) == 1
    await extension_pool.client_servers.bring(one, "k_2", {})
    assert (files(), extension_pool.client_servers.layers) == ([], [])
    assert one.extensions.resolution.layers == extension_pool.of_cwd(one.ledger.row.cwd)


async def test_a_client_that_brings_the_same_again_keeps_them(extension_pool, session, files):
    one = session("s_1")
    extension_pool.join(one)
    await extension_pool.client_servers.bring(one, "k_1", A)
    [layer], before = extension_pool.client_servers.layers, files()
    await extension_pool.client_servers.bring(one, "k_2", A)
    assert (extension_pool.client_servers.layers, files()) == ([layer], before)


async def test_a_session_without_extensions_gets_those_of_its_client(extension_pool, session):
    one = session("s_1", no_ext=True)
    assert extension_pool.join(one) is None
    await extension_pool.client_servers.bring(one, "k_1", A)
    extension_pool.join(one)
    assert await names(extension_pool, one) == ["mcp-a"]


async def test_a_session_that_returns_finds_what_its_clients_have_brought(extension_pool, session):
    one = session("s_1")
    extension_pool.join(one)
    await extension_pool.client_servers.bring(one, "k_1", A)
    extension_pool.leave(one)
    assert extension_pool.client_servers.layers == []
    extension_pool.join(one)
    assert await names(extension_pool, one) == ["mcp-a"]


async def test_what_is_too_long_for_a_file_is_refused(extension_pool, session):
    one = session("s_1")
    with pytest.raises(CommandError, match="at most 1 MiB"):
        await extension_pool.client_servers.bring(one, "k_1", {"a": McpServer(command="x" * 2**20)})


async def test_no_file_outlives_the_daemon(extension_pool, session, files):
    one = session("s_1")
    await extension_pool.client_servers.bring(one, "k_1", A)
    assert files()
    await extension_pool.stop()
    assert not files()
