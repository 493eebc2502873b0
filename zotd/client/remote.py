"""A daemon on another machine, as the connected socket that every client expects (`docs/remote.md`).

    client <- lines -> a pair of sockets <- lines -> bridge, a thread <- text messages -> zotd

So no client knows about WebSocket, and none but those that need it import aiohttp (0.2 s). Nothing piles up in between:
whoever does not read is not written to, and then neither is read from who writes to him.
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
"""For the answer to the hello that is said for a client that says none: as long as a client gives any command."""

REQUEST_LIMIT = 16 * 1024 * 1024
"""Bytes of the longest line that a daemon takes (`docs/protocol.md`)."""

REFUSED = 4401
"""Close code: the token is not known, has expired or was revoked."""

GREETING = "zot introduces its client"
"""Id of the one request that no client has sent."""


def open_socket(url: str, token_path: str, ca_path: str, home: str, *, limit_s: float = HANDSHAKE_S) -> socket.socket:
    """A blocking socket that speaks to the daemon at `url`, like `blocking.open_socket`; the caller closes it.

    `token_path`, `ca_path`: see `token_file.read` and `ssl.create_default_context`; `home`: see `pins`. The token goes
    with the first frame that the client sends; if that is no hello, one is said before it. A refused token is the
    answer to that frame (`unauthorized`).

    What was sent right before the end of the program, without waiting for an answer, may be lost.

    Raises:
        NotRunningError: nobody listens there.
        NoAnswerError: the handshake has taken longer than `limit_s`.
        ClientError: anything else; the sentence says what to change.
    """
    where = origin.parsed(url)
    token = token_file.read(token_path)
    pins.check(token, where.name, home)
    context = handshake.trusting(ca_path) if where.is_tls else None
    ours, theirs = socket.socketpair()
    bridge = _Bridge(theirs, where, token, home, limit_s=limit_s)
    # A daemon thread: a client that ends does not wait for the network.
    threading.Thread(target=bridge.run, args=(context,), name=f"zot to {where.name}", daemon=True).start()
    try:
        bridge.opened.result(limit_s)
        limit_sends(ours, SEND_S)
    except TimeoutError as error:  # the thread is in the resolver, which only it can leave; it then finds us gone
        ours.close()
        raise handshake.too_late(where, limit_s) from error
    except BaseException:
        ours.close()
        raise
    return ours


class _Bridge:
    """One connection; lives in a thread of its own."""

    def __init__(self, end: socket.socket, where: TokenAudience, token: str, home: str, *, limit_s: float) -> None:
        """Owns `end`, of the pair whose other end the client has. `limit_s`: for the handshake."""
        self.opened: Future[None] = Future()
        """Done when frames can be sent; or with the reason why not, a `ClientError`."""
        self._end = end
        self._where = where
        self._token = token
        self._home = home
        self._limit_s = limit_s

    def run(self, context: ssl.SSLContext | None) -> None:
        """Carry frames until one side ends; the other one sees the end, too."""
        try:
            asyncio.run(self._run(context))
        except BaseException as error:
            if self.opened.done():
                raise  # a bug: the thread's end prints it
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
                    client.close()  # at once: the goodbye to a network that is silent takes `handshake.CLOSE_S`
            with suppress(ConnectionError):
                await client.wait_closed()  # ends when the client has read what there is, or has closed its end

    async def _talk(
        self, there: aiohttp.ClientWebSocketResponse, here: asyncio.StreamReader, client: asyncio.StreamWriter
    ) -> None:
        first = await _line(here)
        if first is None:
            return
        # Whichever side has gone away, or says nothing: the other one is told by its own end.
        with suppress(ConnectionError, TimeoutError):
            refusal = await self._introduce(there, first) or await self._pump(there, here, client)
            if refusal is not None:
                client.write(json.dumps(_as_answer(refusal, _decoded(first))).encode() + b"\n")

    async def _introduce(self, there: aiohttp.ClientWebSocketResponse, first: bytes) -> Json | None:
        """Send the client's hello with the token in it, or one for a client that says none; what refuses that, if so."""
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
        """The answer to our hello, or the refusal that came in its place. Raises `ConnectionError`: neither did."""
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
        """Carry frames both ways until one side ends; what refuses the client, when not one frame came back."""
        async with asyncio.TaskGroup() as tasks:
            sending = tasks.create_task(_send(here, there))
            try:
                count, reason = await _receive(there, client)
            finally:
                sending.cancel()
        return None if count else self._refusal(there, reason)

    def _refusal(self, there: aiohttp.ClientWebSocketResponse, reason: object) -> Json | None:
        """Why the daemon wants nothing of this client; None when it has only gone away. `reason`: what it says of it."""
        if there.close_code != REFUSED:
            return None
        reason = reason or "it may have expired or been revoked"
        return {"code": "unauthorized", "error": f"{self._where.name} refused the token: {reason}"}


async def _send(here: asyncio.StreamReader, there: aiohttp.ClientWebSocketResponse) -> None:
    """Carry the client's frames until it closes its end, and then say goodbye for it."""
    with suppress(ConnectionError):
        while (line := await _line(here)) is not None:
            await there.send_str(line.decode(errors="replace"))  # waits while the network is slower than the client
    await there.close()


async def _receive(there: aiohttp.ClientWebSocketResponse, client: asyncio.StreamWriter) -> tuple[int, object]:
    """Carry the daemon's frames until one side ends; how many there were, and the reason that the daemon gave."""
    count = 0
    with suppress(ConnectionError):
        while (message := await there.receive()).type is aiohttp.WSMsgType.TEXT:
            client.write(message.data.encode() + b"\n")
            await client.drain()  # waits while the client is slower than the network
            count += 1
        return count, message.extra
    return count, None


async def _line(here: asyncio.StreamReader) -> bytes | None:
    """The client's next frame; None at its end, also when that is in the middle of one."""
    try:
        return (await here.readuntil(b"\n"))[:-1]
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
        return None


def _decoded(line: bytes) -> Json:
    """A frame; empty for what is none: the daemon says what is wrong with that."""
    try:
        frame: object = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return frame if isinstance(frame, dict) else {}


def _as_answer(refusal: Json, request: Json) -> Json:
    named = {"command": request.get("type", ""), "id": request.get("id")}
    return {"type": "response", **named, "success": False, **refusal}
