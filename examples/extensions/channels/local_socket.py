"""Talk to the agent through a Unix socket: each line of a client is a message, each answer is a line.

Try it with `socat - UNIX-CONNECT:$HOME/.zot-chat.sock`; ZOT_CHAT_SOCKET names another place.
"""

import asyncio
import os
from itertools import count
from pathlib import Path
from typing import NamedTuple

SOCKET = Path(os.environ.get("ZOT_CHAT_SOCKET") or Path.home() / ".zot-chat.sock")

_messages: "asyncio.Queue[Message]" = asyncio.Queue()
_clients: dict[str, asyncio.StreamWriter] = {}
_numbers = count(1)


class Message(NamedTuple):
    """What the host wants of a message; `zotd.sdk.Message` would do as well."""

    text: str
    sender: str
    channel: str = "local_socket"
    metadata: dict[str, object] | None = None


async def connect() -> None:
    """Listen; clients of this user only."""
    await asyncio.start_unix_server(_serve, SOCKET)
    SOCKET.chmod(0o600)  # noqa: ASYNC240  one system call


async def recv() -> Message:
    """The next line of any client."""
    return await _messages.get()


async def send(message: Message) -> None:
    """Answer a client; one that has gone in the meantime gets nothing."""
    client = _clients.get(message.sender)
    if client is not None:
        client.write(message.text.replace("\n", " ").encode() + b"\n")
        await client.drain()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    sender = f"client-{next(_numbers)}"
    _clients[sender] = writer
    try:
        while line := await reader.readline():
            await _messages.put(Message(line.decode(errors="replace").strip(), sender))
    finally:
        del _clients[sender]
        writer.close()
