"""A web server at 127.0.0.3, which commands may reach, and at addresses that they may not; see `tests.jail.escapes`."""

import asyncio
import ssl
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache

import trustme

ALLOWED = "127.0.0.3"
EVIL = "evil.example"


@asynccontextmanager
async def web():
    """The ports for HTTP and for TLS."""
    async with AsyncExitStack() as stack:

        async def listen(host, port=0, context=None):
            server = await asyncio.start_server(answer, host, port, ssl=context)
            stack.callback(server.close)
            return server.sockets[0].getsockname()[1]

        port = 0
        while not port:
            port = await listen(ALLOWED)
            try:
                for host in ("127.0.0.1", "::1"):
                    await listen(host, port)
            except OSError:  # another program has this port there
                port = 0
        yield port, await listen(ALLOWED, context=certified())


@cache
def certified():
    """A TLS context for every name; the connection knows by which one it was asked.

    All servers of a run share it: keys are expensive.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    trustme.CA().issue_cert(EVIL).configure_cert(context)

    def named(connection, name, _):
        connection.asked_for = name

    context.sni_callback = named
    return context


async def answer(reader, writer):
    host, port = writer.get_extra_info("sockname")[:2]
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (EOFError, OSError):
        writer.close()
        return
    connection = writer.get_extra_info("ssl_object")
    names = {getattr(connection, "asked_for", None), EVIL if f"host: {EVIL}" in head.decode().lower() else None}
    if head.startswith(b"GET /away "):
        said = f"HTTP/1.0 302 Found\r\nLocation: http://127.0.0.1:{port}/\r\n\r\n"
    else:
        said = f"HTTP/1.0 200 OK\r\n\r\n{'allowed' if host == ALLOWED and EVIL not in names else 'ESCAPED'}"
    writer.write(said.encode())
    writer.close()
