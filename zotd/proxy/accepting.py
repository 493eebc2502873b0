"""Accepts the connections of one command at a listener in its network namespace, until the command has ended."""

import asyncio
import socket

from zotd.proxy.connection import ClientRights, serve
from zotd.proxy.http import HEAD_BYTES
from zotd.proxy.relay import Peer
from zotd.tasks import contained

MAX_CONNECTIONS = 256
"""Most connections of one command at the same time; those beyond are closed at once. Each takes two descriptors."""


async def accept_until_end(listener: socket.socket, pidfd: int, rights: ClientRights) -> None:
    """Serve connections until the process of `pidfd` has ended, and end them then. Owns `listener`, not `pidfd`."""
    clients: set[asyncio.Task[None]] = set()
    has_ended = False
    async with asyncio.TaskGroup() as group:

        def on_client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if has_ended or len(clients) >= MAX_CONNECTIONS:
                writer.transport.abort()
                return
            task = contained(group, "a connection of the proxy", serve(Peer(reader, writer), rights))
            clients.add(task)
            task.add_done_callback(clients.discard)
            task.add_done_callback(lambda _: writer.transport.abort())  # also if it was cancelled before it began

        # Closed by hand: `async with` waits, from Python 3.12 on, for connections that are about to be cancelled.
        server = await asyncio.start_server(on_client, sock=listener, limit=HEAD_BYTES)
        try:
            await readable(pidfd)  # the command has ended, and with it all others in its namespace
        finally:
            has_ended = True  # also for connections that were accepted a moment ago
            server.close()
            for task in clients:
                task.cancel()


async def readable(descriptor: int) -> None:
    """Wait until there is something to read, or, for a pidfd, until the process has ended."""
    loop = asyncio.get_running_loop()
    event = asyncio.Event()
    loop.add_reader(descriptor, event.set)
    try:
        await event.wait()
    finally:
        loop.remove_reader(descriptor)
