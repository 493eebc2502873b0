"""Hands messages over to the host so that none is lost if either process is killed."""

from __future__ import annotations

import asyncio
import secrets
from concurrent.futures import Future
from itertools import count

from ..peer import HostPeer
from ..pipe import Frame, text

FEATURE = "channel_accepted"
"""Feature of a host that answers a `channel_message` after it has stored the message."""


class Receipts:
    """Sends messages to the host and waits until they are stored, if the host reports that."""

    def __init__(self, peer: HostPeer) -> None:
        self._peer = peer
        self._greeted: Future[None] = Future()
        self._waiting: dict[str, Future[None]] = {}
        # The answer to an earlier process of this channel may arrive here, so ids must be unique over processes.
        self._ids = map(f"{secrets.token_hex(4)}-{{}}".format, count(1))
        self._take_hello = peer.receivers["hello_ack"]
        peer.receivers["hello_ack"] = self._hello_ack
        peer.receivers["channel_accepted"] = self._accepted

    async def hand_over(self, frame: Frame) -> None:
        """Send a `channel_message`; return when the platform may forget it. May wait until the end of the process."""
        # Shielded: cancelling this wait would cancel the future, which all messages share.
        await asyncio.shield(asyncio.wrap_future(self._greeted))
        if FEATURE not in self._peer.hello.features:
            self._peer.pipe.send(frame)
            return
        key = next(self._ids)
        accepted = self._waiting[key] = Future()
        try:
            self._peer.pipe.send({**frame, "id": key})
            await asyncio.wrap_future(accepted)
        finally:
            del self._waiting[key]

    def _hello_ack(self, frame: Frame) -> None:
        self._take_hello(frame)
        if not self._greeted.done():
            self._greeted.set_result(None)

    def _accepted(self, frame: Frame) -> None:
        accepted = self._waiting.get(text(frame, "id"))
        if accepted is not None and accepted.set_running_or_notify_cancel():
            accepted.set_result(None)
