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
"""May be there as well: called every few seconds with a message that the agent works on."""


class ChannelModules:
    """A module file as a channel. Its next version takes over when the earlier one has been told to stop."""

    def __init__(self, peer: HostPeer) -> None:
        self._peer = peer
        self._receipts = Receipts(peer)
        self._current: ModuleLoop | None = None
        self._sending: deque[FunctionRun] = deque()
        self._busy_with: dict[tuple[str, str], Busy] = {}
        """By channel and sender: the sign that a message of theirs is worked on."""
        self._stop: Callable[[], object] = lambda: None
        peer.receivers["channel_send"] = self._send
        peer.receivers["channel_busy"] = self._busy

    def load(self, path: Path) -> ModuleLoop:
        """The channel that a file defines, not connected yet."""
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
        """Connect it; the earlier version, if there is one, stops receiving first."""
        self._stop_all()
        self._current = module
        frame: Frame = {"type": "register_channel", "name": name, "description": module.description}
        self._peer.pipe.send({**frame, "shows_busy": True} if module.shows_busy else frame)
        self._peer.workers.background(module.run(), self._started)

    def drop(self, name: str) -> None:
        """Stop receiving and take it back."""
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
        # One lane: answers arrive in the order in which they were given, also when one needs several tries.
        self._peer.workers.start(FunctionRun(lambda: channel.send(message), settled, lane=self._sending))

    def _busy(self, frame: Frame) -> None:
        channel, message = self._current, _message(frame)
        key = message.channel, message.sender
        earlier = self._busy_with.get(key)
        if earlier is not None and frame.get("busy") and earlier.message.metadata == message.metadata:
            earlier.message = message  # it does something else, which the next call shows
            return
        if earlier is not None:
            del self._busy_with[key]
            earlier.end()
        if channel is None or not channel.shows_busy or not frame.get("busy"):
            return
        sign = self._busy_with[key] = Busy(message)
        self._peer.workers.background(channel.keep_busy(lambda: sign.message), sign.started)


class Busy:
    """A message that is worked on, and the end of that, which another thread may not have begun to show yet."""

    def __init__(self, message: Message) -> None:
        self.message = message
        self._lock = threading.Lock()
        self._stop: Callable[[], object] | None = None
        self._is_over = False

    def started(self, stop: Callable[[], object]) -> None:
        """The work has begun; `stop` ends it."""
        with self._lock:
            self._stop = stop
        if self._is_over:
            stop()

    def end(self) -> None:
        """End it now, or as soon as it begins."""
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
    sys.path.extend(map(str, directories))
    peer.workers.expect_coroutines()
    peer.run(prepare=Reloader(peer.pipe, ChannelModules(peer), directories, only=name).start)
