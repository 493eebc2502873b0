"""The life of one language server."""

from tests.diagnostics.conftest import fake
from zotd.config.language_servers import DiagnosticsSection
from zotd.diagnostics import server as server_module
from zotd.diagnostics.catalog import rows
from zotd.diagnostics.server import SLOW, CheckResult, FileEdit, LanguageServer, ServerSite


def server_of(here, *traits):
    row = next(one for one in rows(DiagnosticsSection(servers=fake(*traits))) if one.name == "fake")
    return LanguageServer(row, ServerSite(str(here.work), str(here.work), here.env), here.facilities, print)


def edit(here, text):
    return FileEdit(str(here.work / "a.txt"), "plaintext", None, text)


async def test_a_server_that_was_late_three_times_is_slow_until_it_is_in_time(world):
    async with world(fake()) as here:
        server = server_of(here)
        for number in range(3):
            assert not server.is_slow
            await server.submit(edit(here, f"{number}"), patience_s=0.0)
        assert server.is_slow
        assert server.reason == SLOW
        await server.submit(edit(here, "four"), patience_s=60.0)
        assert not server.is_slow
        assert server.reason == ""
        await server.stop()


async def test_a_server_that_is_not_used_ends_and_begins_again(world, monkeypatch):
    monkeypatch.setattr(server_module, "IDLE_S", 0.05)
    async with world(fake()) as here:
        server = server_of(here)
        await server.submit(edit(here, "x # error: first\n"), patience_s=60.0)
        await server.rests()
        assert (server.state, server.pid) == ("stopped", None)
        result = await server.submit(edit(here, "x # error: first\nx # error: second\n"), patience_s=60.0)
        (found,) = result.errors
        assert found.message == "second"  # the other one was told
        await server.stop()


async def test_when_too_many_edits_wait_the_oldest_is_not_checked(world, monkeypatch):
    monkeypatch.setattr(server_module, "MOST_WAITING", 2)
    async with world(fake()) as here:
        server = server_of(here)
        first, *others = [server.submit(edit(here, f"x # error: {number}\n"), patience_s=60.0) for number in range(3)]
        for check in others:
            assert len((await check).errors) == 1
        assert first.cancelled()
        await server.stop()
        assert await server.submit(edit(here, "five"), patience_s=60.0) == CheckResult()
