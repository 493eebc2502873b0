"""Runs a session of each SDK in a template process, so that its forks find everything loaded and built.

The SDKs build their types and clients when they are first used, which takes longer than their import. A rehearsal reads
nothing of the user's and keeps nothing: its home is an empty directory, and its model server answers on the loopback
interface.
"""

import asyncio
import logging
import os
import tempfile
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from zotd.embed import rpc
from zotd.embed.session_runtime import Runtime
from zotd.providers.connect import APIS, load

LIMIT_S = 20.0
"""Longest rehearsal of one SDK, which takes 0.1 s; forks of a template process without one start 0.1 s later."""

REPLIES: Mapping[str, str] = {
    "anthropic": """event: message_start
data: {"type":"message_start","message":{"usage":{"input_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"ready"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}

event: message_stop
data: {"type":"message_stop"}

""",
    "openai": """data: {"choices":[{"index":0,"delta":{"content":"ready"}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

""",
}
"""The reply of a model, by the name of a vendor whose SDK it is for; at this URL both answer in their oldest API."""

_HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {}\r\n\r\n"

log = logging.getLogger(__name__)


def rehearse() -> None:
    """Load all SDKs and run a prompt with each. Leaves no thread and no connection; a failure is only logged."""
    rpc.parser().parse_args(["--model", "rehearsal", "--no-ext"])  # argparse compiles a pattern for each kind of option
    before = set(threading.enumerate())
    for api in APIS:
        load(api)
    for vendor in REPLIES:
        try:
            with tempfile.TemporaryDirectory(prefix="zot-rehearsal-") as folder:
                asyncio.run(_prompt(vendor, folder))
        except Exception as error:  # noqa: BLE001  (no loopback, no space: programs start without a rehearsal)
            log.warning("the rehearsal of %s failed: %s", vendor, error)
    for thread in set(threading.enumerate()) - before:
        thread.join(LIMIT_S)


async def _prompt(vendor: str, folder: str) -> None:
    options = {"provider": vendor, "model": "rehearsal", "cwd": folder, "no_ext": True}
    env = {"ZOT_HOME": str(Path(folder, "home")), "PATH": os.environ.get("PATH", os.defpath)}
    async with (
        asyncio.timeout(LIMIT_S),
        _model(REPLIES[vendor]) as url,
        Runtime.open({**options, "base_url": url}, env=env) as runtime,
    ):
        async for _ in runtime.prompt("hello"):
            pass


@asynccontextmanager
async def _model(reply: str) -> AsyncIterator[str]:
    """Yield the base URL of a server that gives the same reply to each request."""
    answer = (_HEAD.format(len(reply)) + reply).encode()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        sizes = [int(line.partition(":")[2]) for line in lines if line.startswith("content-length:")]
        await reader.readexactly(sum(sizes))
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        yield f"http://{host}:{port}"
