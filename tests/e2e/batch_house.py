"""Daemons that run batches, and what tests ask them."""

import asyncio

from tests.e2e.conftest import House
from zotd.testing.live_daemon import DaemonProcess

WAIT_S = 60.0
"""Longest wait for results, also when a lease has to expire on a busy machine."""


def furnish(folder, server):
    """Have the daemon of this folder use a model of this server."""
    home = folder / "zot"
    home.mkdir(mode=0o700, parents=True)
    vendor = f'[providers.openai]\nbase_url = "{server.openai_url}"\n'
    (home / "config.toml").write_text(f'provider = "openai"\nmodel = "gpt-4o"\n{vendor}')


def opened(stack, folder, server, **variables):
    """A daemon in a process of its own, with a model of this server."""
    folder.mkdir(exist_ok=True)
    furnish(folder, server)
    daemon = stack.enter_context(DaemonProcess(folder, {"OPENAI_API_KEY": "sk-x", **variables}))
    return House(stack, daemon.place, daemon)


async def submit(house, *messages, batch="b", client=None, priority=0, **fields):
    client = client or await house.connect()
    orders = [
        {"number": number, "message": message, "cwd": str(house.cwd), **fields}
        for number, message in enumerate(messages, 1)
    ]
    return await client.ask("batch.submit", batch=batch, prompts=orders, priority=priority)


async def results(house, count, batch="b", client=None):
    """The first `count` results of a batch."""
    found: list[dict[str, object]] = []
    client = client or await house.connect()
    async with asyncio.timeout(WAIT_S):
        while len(found) < count:
            page = await client.ask("batch.results", batch=batch, after=len(found), wait_s=5)
            found += page["results"]
    assert [one["place"] for one in found] == list(range(1, count + 1))
    return found


async def result(house, batch="b"):
    """The only result of a batch."""
    (found,) = await results(house, 1, batch)
    return found
