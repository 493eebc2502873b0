"""Serving `channels/NAME.py`: a file that talks to one messaging platform."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from ..answers import message_of
from ..hints import description
from ..peer import Peer
from ..pipe import Frame, log_error
from ..values import Message
from ..work import Job
from .conversation import Conversation
from .files import ContractError, import_file
from .receipts import Receipts
from .reload import Reloader

CONTRACT = ("connect", "recv", "send")


class Channels:
    """A module file as a channel. Its next version takes over when the earlier one has been told to stop."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._receipts = Receipts(peer)
        self._current: Conversation | None = None
        self._sending: deque[Job] = deque()
        self._stop: Callable[[], object] = lambda: None
        peer.receivers["channel_send"] = self._send

    def load(self, path: Path) -> Conversation:
        """The channel that a file defines, not connected yet."""
        module = import_file(path)
        functions = {name: vars(module)[name] for name in CONTRACT if callable(vars(module).get(name))}
        missing = [f"{name}()" for name in CONTRACT if name not in functions]
        if missing:
            raise ContractError(
                f"{path.name} does not define {', '.join(missing)}: a channel has connect, recv and send"
            )
        about = description(module) or description(functions["connect"])
        return Conversation(path.stem, about, functions, pipe=self._peer.pipe, receipts=self._receipts)

    def adopt(self, name: str, module: Conversation) -> None:
        """Connect it; the earlier version, if there is one, stops receiving first."""
        self._stop()
        self._current = module
        self._peer.pipe.send({"type": "register_channel", "name": name, "description": module.description})
        self._peer.workers.background(module.run(), self._started)

    def drop(self, name: str) -> None:
        """Stop receiving and take it back."""
        self._stop()
        if self._current is not None:
            self._current = None
            self._peer.pipe.send({"type": "unregister", "kind": "channel", "name": name})

    def _started(self, stop: Callable[[], object]) -> None:
        self._stop = stop

    def _send(self, frame: Frame) -> None:
        channel, send_id = self._current, frame.get("id")

        def settled(_: object, error: BaseException | None) -> None:
            answer: Frame = {"type": "channel_sent", "id": send_id}
            if error is not None:
                log_error(error)
                answer["error"] = message_of(error)
            self._peer.pipe.send(answer)

        if channel is None:
            settled(None, LookupError("the channel's file is gone or does not load"))
            return
        metadata = frame.get("metadata")
        message = Message(
            text=str(frame.get("text", "")),
            sender=str(frame.get("sender", "")),
            channel=str(frame.get("channel", "")),
            metadata=metadata if isinstance(metadata, dict) else None,
        )
        # One lane: answers arrive in the order in which they were given, also when one needs several tries.
        self._peer.workers.start(Job(lambda: channel.send(message), settled, lane=self._sending))


def serve_channel(peer: Peer, name: str, directories: Sequence[Path]) -> None:
    """Serve one channel until the host ends it."""
    sys.path.extend(map(str, directories))
    peer.workers.expect_coroutines()
    peer.run(prepare=Reloader(peer.pipe, Channels(peer), directories, only=name).start)
