"""The program: all bridges of a workspace, or with arguments a single one, on its own stdin and stdout."""

import asyncio
import os
import socket
import sys

from zotd import logs
from zotd.bridges.host_link import HostLink, taken_over
from zotd.bridges.mcp.bridge_log import StderrOfBridges
from zotd.bridges.mcp.bridge_server import BridgeServer
from zotd.bridges.mcp.served import ServedBridge
from zotd.process import descriptors
from zotd.sanitize import escaped
from zotd.wire.bridges import BridgeRequest


def main() -> int:
    """Run bridges until the daemon ends them; return the exit code.

    With arguments, run the bridge to the server `argv[2]` of the file `argv[1]`; `argv[3]` is the digest of the entry that
    the host has read, and an entry with another digest is not started.
    """
    arguments = tuple(sys.argv[1:])
    stdin, stdout = taken_over()
    if arguments:
        with logs.configured(None, level="info", stderr=True):
            return asyncio.run(_run_one(arguments, stdin, stdout))
    sys.stderr = sys.stdout = StderrOfBridges(sys.stderr)
    descriptors.raise_limit()
    with logs.configured(None, level="info", stderr=True), socket.socket(fileno=stdin) as control:
        asyncio.run(_run_all(control, stdout))
    return 0


async def _run_all(control: socket.socket, reports: int) -> None:
    await BridgeServer(control, reports).run()


async def _run_one(arguments: tuple[str, ...], stdin: int, stdout: int) -> int:
    link = await HostLink.opened(stdin, stdout)
    try:
        return await ServedBridge(BridgeRequest(arguments, dict(os.environ), ""), None, fails=_say).run(link)
    finally:
        await link.close()


async def _say(sentence: str) -> None:
    sys.stderr.write(escaped(sentence) + "\n")


if __name__ == "__main__":
    sys.exit(main())
