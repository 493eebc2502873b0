"""Where the HTTP servers of tests listen."""

from aiohttp import web


async def listening(runner: web.AppRunner) -> str:
    """Have the runner listen at a free port of 127.0.0.1, and return its URL; the caller cleans the runner up."""
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    host, port = runner.addresses[0][:2]
    return f"http://{host}:{port}"
