"""Serving `channels/NAME.py`: a file that talks to one messaging platform."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from ..answers import message_of
from ..hints import description
from ..peer import HostPeer
from ..pipe import Frame, log_error
from ..values import Message
from ..work import FunctionRun
from .conversation import ModuleLoop
from .files import ContractError, import_file
from .receipts import Receipts
from .reload import Reloader

CONTRACT = ("connect", "recv", "send")
BUSY = "busy"
"""Optional: called every few seconds with a message that the agent is working on."""


class ChannelModules:
    """Serves a module file as a channel. A new version takes over after the earlier one was asked to stop."""

    def __init__(self, peer: HostPeer) -> None:
        self._peer = peer
        self._receipts = Receipts(peer)
        self._current: ModuleLoop | None = None
        self._sending: deque[FunctionRun] = deque()
        self._busy_with: dict[tuple[str, str], Busy] = {}
        """By channel and sender: the "busy" sign for their message."""
        self._stop: Callable[[], object] = lambda: None
        peer.receivers["channel_send"] = self._send
        peer.receivers["channel_busy"] = self._busy

    def load(self, path: Path) -> ModuleLoop:
        """Load the channel that a file defines, without connecting it."""
        module = import_file(path)
        functions = {name: vars(module)[name] for name in (*CONTRACT, BUSY) if callable(vars(module).get(name))}
        missing = [f"{name}()" for name in CONTRACT if name not in functions]
        if missing:
            raise ContractError(
                f"{path.name} does not define {', '.join(missing)}: a channel has connect, recv and send"
            )
        about = description(module) or description(functions["connect"])
        return ModuleLoop(path.stem, about, functions, pipe=self._peer.pipe, receipts=self._receipts)

    def adopt(self, name: str, module: ModuleLoop) -> None:
        """Connect a channel after its earlier version, if any, was asked to stop."""
        # A platform gives each message to one receiver, so two versions must not receive at once.
        self._stop_all()
        self._current = module
        frame: Frame = {"type": "register_channel", "name": name, "description": module.description}
        self._peer.pipe.send({**frame, "shows_busy": True} if module.shows_busy else frame)
        self._peer.workers.background(module.run(), self._started)

    def drop(self, name: str) -> None:
        """Stop receiving and remove the registration."""
        self._stop_all()
        if self._current is not None:
            self._current = None
            self._peer.pipe.send({"type": "unregister", "kind": "channel", "name": name})

    def _stop_all(self) -> None:
        self._stop()
        while self._busy_with:
            self._busy_with.popitem()[1].end()

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
        message = _message(frame)
        # One lane: answers arrive in the order in which they were given, even if one needs several tries.
        self._peer.workers.start(FunctionRun(lambda: channel.send(message), settled, lane=self._sending))

    def _busy(self, frame: Frame) -> None:
        channel, message = self._current, _message(frame)
        key = message.channel, message.sender
        earlier = self._busy_with.get(key)
        if earlier is not None and frame.get("busy") and earlier.message.metadata == message.metadata:
            earlier.message = message  # only the text has changed; the next call shows it
            return
        if earlier is not None:
            del self._busy_with[key]
            earlier.end()
        if channel is None or not channel.shows_busy or not frame.get("busy"):
            return
        sign = self._busy_with[key] = Busy(message)
        self._peer.workers.background(channel.keep_busy(lambda: sign.message), sign.started)


class Busy:
    """The "busy" sign for a message. Its end may be requested before another thread has started to show it."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self._lock = threading.Lock()
        self._stop: Callable[[], object] | None = None
        self._is_over = False

    def started(self, stop: Callable[[], object]) -> None:
        """Record how to end the sign; end it at once if that was requested before."""
        with self._lock:
            self._stop = stop
        # `end` may have been called between the request and this callback.
        if self._is_over:
            stop()

    def end(self) -> None:
        """End the sign now, or as soon as it starts."""
        with self._lock:
            self._is_over, stop = True, self._stop
        if stop is not None:
            stop()


def _message(frame: Frame) -> Message:
    metadata, choices = frame.get("metadata"), frame.get("choices")
    return Message(
        text=str(frame.get("text", "")),
        sender=str(frame.get("sender", "")),
        channel=str(frame.get("channel", "")),
        metadata=metadata if isinstance(metadata, dict) else None,
        choices=[
            (str(one.get("label", "")), str(one.get("text", "")))
            for one in (choices if isinstance(choices, list) else [])
            if isinstance(one, dict)
        ],
    )


def serve_channel(peer: HostPeer, name: str, directories: Sequence[Path]) -> None:
    """Serve one channel until the host ends it."""
    # At the end: a helper must not hide a module of a library.
    sys.path.extend(map(str, directories))
    peer.workers.expect_coroutines()
    peer.run(prepare=Reloader(peer.pipe, ChannelModules(peer), directories, only=name).start)
