"""Connects to a daemon on another machine, and provides the local socket that clients expect (`docs/remote.md`).

    client <- lines -> socket pair <- lines -> bridge (thread) <- text messages -> zotd

Clients therefore need not know about WebSocket, and aiohttp (0.2 s) is imported only when needed. Backpressure works in
both directions: the bridge does not read from one side while the other one is not reading.
"""

import asyncio
import json
import socket
import ssl
import threading
from concurrent.futures import Future
from contextlib import suppress

import aiohttp

from zotd.client import handshake, origin, pins, token_file
from zotd.client.blocking import SEND_S, Json, limit_sends
from zotd.client.handshake import HANDSHAKE_S
from zotd.client.origin import TokenAudience
from zotd.wire.version import VERSION

GREETING_S = 30.0
"""Timeout for the response to a hello that the bridge sends for the client; as long as for any command of a client."""

REQUEST_LIMIT = 16 * 1024 * 1024
"""Longest line that a daemon accepts, in bytes (`docs/protocol.md`)."""

REFUSED = 4401
"""Close code for a token that is unknown, expired or revoked."""

GREETING = "zot introduces its client"
"""Id of the bridge's own hello; no client uses it."""


def open_socket(url: str, token_path: str, ca_path: str, home: str, *, limit_s: float = HANDSHAKE_S) -> socket.socket:
    """Return a blocking socket to the daemon at `url`, like `blocking.open_socket`; the caller closes it.

    The token is added to the first frame of the client, if it is a hello; otherwise a hello is sent before it. If the
    token is refused, the client gets an error response to its first frame (`unauthorized`).

    Data sent right before the end of the program, without waiting for a response, may be lost.

    Args:
        url: see `origin.parsed`.
        token_path: see `token_file.read`.
        ca_path: see `ssl.create_default_context`; may be empty.
        home: see `pins`.
        limit_s: timeout of the handshake in seconds.

    Raises:
        NotRunningError: no process listens there.
        NoAnswerError: the handshake took longer than `limit_s`.
        ClientError: any other failure; the message says what to change.
    """
    where = origin.parsed(url)
    token = token_file.read(token_path)
    pins.check(token, where.name, home)
    context = handshake.trusting(ca_path) if where.is_tls else None
    ours, theirs = socket.socketpair()
    bridge = _Bridge(theirs, where, token, home, limit_s=limit_s)
    # A daemon thread, so that the exit of the program does not wait for the network.
    threading.Thread(target=bridge.run, args=(context,), name=f"zot to {where.name}", daemon=True).start()
    try:
        bridge.opened.result(limit_s)
        limit_sends(ours, SEND_S)
    except TimeoutError as error:  # the thread is blocked in the resolver; it ends when it finds `ours` closed
        ours.close()
        raise handshake.too_late(where, limit_s) from error
    except BaseException:
        ours.close()
        raise
    return ours


class _Bridge:
    """Transports frames of one connection, in a thread of its own."""

    def __init__(self, end: socket.socket, where: TokenAudience, token: str, home: str, *, limit_s: float) -> None:
        """Take ownership of `end`; the client has the other end of the pair. `limit_s` is for the handshake."""
        self.opened: Future[None] = Future()
        """Completed when frames can be sent, or with a `ClientError`."""
        self._end = end
        self._where = where
        self._token = token
        self._home = home
        self._limit_s = limit_s

    def run(self, context: ssl.SSLContext | None) -> None:
        """Transport frames until one side ends; the other side then sees the end as well."""
        try:
            asyncio.run(self._run(context))
        except BaseException as error:
            if self.opened.done():
                raise  # a bug: the traceback is printed when the thread ends
            self.opened.set_exception(error)
        finally:
            self._end.close()

    async def _run(self, context: ssl.SSLContext | None) -> None:
        async with handshake.session(self._where) as session:
            there = await handshake.connected(session, self._where, context, self._limit_s)
            async with handshake.ended(there):
                pins.record(self._token, self._where.name, self._home)
                here, client = await asyncio.open_unix_connection(sock=self._end, limit=REQUEST_LIMIT)
                self.opened.set_result(None)
                try:
                    await self._talk(there, here, client)
                finally:
                    client.close()  # before `ended`, which may wait `handshake.CLOSE_S` for a silent network
            with suppress(ConnectionError):
                await client.wait_closed()  # returns when the client has read the rest, or has closed its end

    async def _talk(
        self, there: aiohttp.ClientWebSocketResponse, here: asyncio.StreamReader, client: asyncio.StreamWriter
    ) -> None:
        first = await _line(here)
        if first is None:
            return
        # If one side ends or times out, the other one notices when its own connection is closed.
        with suppress(ConnectionError, TimeoutError):
            refusal = await self._introduce(there, first) or await self._pump(there, here, client)
            if refusal is not None:
                client.write(json.dumps(_as_answer(refusal, _decoded(first))).encode() + b"\n")

    async def _introduce(self, there: aiohttp.ClientWebSocketResponse, first: bytes) -> Json | None:
        """Send the client's hello with the token, or one in its place; return the error if it is refused."""
        frame = _decoded(first)
        if frame.get("type") == "hello":
            await there.send_str(json.dumps({**frame, "token": self._token}))
            return None
        client = {"name": "zot", "kind": "zot", "version": VERSION}
        await there.send_str(json.dumps({"type": "hello", "id": GREETING, "client": client, "token": self._token}))
        async with asyncio.timeout(GREETING_S):
            answer = await self._greeted(there)
        if answer.get("success") is not True:
            return {"code": answer.get("code", "internal"), "error": answer.get("error", "zotd refused the connection")}
        await there.send_str(first.decode(errors="replace"))
        return None

    async def _greeted(self, there: aiohttp.ClientWebSocketResponse) -> Json:
        """Return the response to our hello, or the error that was sent instead; raises `ConnectionError` if neither."""
        while (message := await there.receive()).type is aiohttp.WSMsgType.TEXT:
            answer = _decoded(message.data.encode())
            if answer.get("id") == GREETING:
                return answer
        refusal = self._refusal(there, message.extra)
        if refusal is None:
            raise ConnectionAbortedError("the daemon closed the connection")
        return refusal

    async def _pump(
        self, there: aiohttp.ClientWebSocketResponse, here: asyncio.StreamReader, client: asyncio.StreamWriter
    ) -> Json | None:
        """Transport frames until one side ends; return an error if the daemon refused the client without any frame."""
        async with asyncio.TaskGroup() as tasks:
            sending = tasks.create_task(_send(here, there))
            try:
                count, reason = await _receive(there, client)
            finally:
                sending.cancel()
        return None if count else self._refusal(there, reason)

    def _refusal(self, there: aiohttp.ClientWebSocketResponse, reason: object) -> Json | None:
        """Return the error if the daemon closed because of the token, else None. `reason` is the one it gave."""
        if there.close_code != REFUSED:
            return None
        reason = reason or "it may have expired or been revoked"
        return {"code": "unauthorized", "error": f"{self._where.name} refused the token: {reason}"}


async def _send(here: asyncio.StreamReader, there: aiohttp.ClientWebSocketResponse) -> None:
    """Send the client's frames until it closes its end, then close the WebSocket."""
    with suppress(ConnectionError):
        while (line := await _line(here)) is not None:
            await there.send_str(line.decode(errors="replace"))  # waits if the network is slower than the client
    await there.close()


async def _receive(there: aiohttp.ClientWebSocketResponse, client: asyncio.StreamWriter) -> tuple[int, object]:
    """Forward the daemon's frames until one side ends; return their number and the close reason."""
    count = 0
    with suppress(ConnectionError):
        while (message := await there.receive()).type is aiohttp.WSMsgType.TEXT:
            client.write(message.data.encode() + b"\n")
            await client.drain()  # waits if the client is slower than the network
            count += 1
        return count, message.extra
    return count, None


async def _line(here: asyncio.StreamReader) -> bytes | None:
    """Return the client's next frame; None at the end, even within a frame."""
    try:
        return (await here.readuntil(b"\n"))[:-1]
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        return None


def _decoded(line: bytes) -> Json:
    """Decode a frame; empty if it is invalid: the daemon reports the error."""
    try:
        frame: object = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return frame if isinstance(frame, dict) else {}


def _as_answer(refusal: Json, request: Json) -> Json:
    named = {"command": request.get("type", ""), "id": request.get("id")}
    return {"type": "response", **named, "success": False, **refusal}
