"""Runs one version of a channel: connects, receives for ever, sends the host's answers.

connecting --connect() returns--> connected --recv() raises--> retrying --recv() returns--> connected
    |                                 ^
    +--raises--> retrying --connect() returns--+      retrying: the same function again, after 1 s, 2 s … 60 s
"""

from __future__ import annotations

import asyncio
import threading
from binascii import b2a_base64
from collections.abc import Awaitable, Callable, Iterator, Mapping

from ..answers import message_of
from ..hints import is_coroutine_function
from ..pipe import Frame, HostPipe, log_error
from ..shapes import Function
from ..values import Image, Message
from .files import ContractError
from .receipts import Receipts

FIRST_DELAY_S, MAX_DELAY_S = 1.0, 60.0
BUSY_S = 4.0
"""Time between two calls of `busy`; platforms show such a sign for at least five seconds."""
BUSY_LIMIT_S = 6 * 3600
"""Longest time for the sign: by then, the frame that ends it must have been lost."""
SEND_TRIES = 5
"""Tries for one message, over 1 + 2 + 4 + 8 s. Then the host gets an error; it still has the message."""


class ModuleLoop:
    """Runs on the event loop; `send` may be awaited as soon as `run` has been started there."""

    def __init__(
        self, name: str, description: str, functions: Mapping[str, Function], *, pipe: HostPipe, receipts: Receipts
    ) -> None:
        """Prepare a channel; `functions` has `connect`, `recv`, `send` and optionally `busy`."""
        self.description = description
        self.shows_busy = "busy" in functions
        self._name = name
        self._functions = functions
        self._pipe = pipe
        self._receipts = receipts
        self._state: tuple[str, str] = ("", "")
        self._connected: asyncio.Event | None = None

    async def run(self) -> None:
        """Connect and receive until cancelled."""
        self._connected = asyncio.Event()
        self._enter("connecting")
        # Until it succeeds, `send` waits and the host keeps the answers.
        await self._until_it_works(lambda: _call(self._functions["connect"]))
        self._connected.set()
        while True:
            await self._until_it_works(self._receive)

    async def send(self, message: Message) -> None:
        """Send a message once the channel is connected, with `SEND_TRIES` tries; raises what the last one raises."""
        assert self._connected is not None, "run() is started first"
        await self._connected.wait()
        # The last try is made after the loop, so that its exception reaches the host.
        for _, delay in zip(range(SEND_TRIES - 1), _delays()):
            try:
                await _call(self._functions["send"], message)
                return
            except Exception as error:  # noqa: BLE001  the author's code
                log_error(error)
            await asyncio.sleep(delay)
        await _call(self._functions["send"], message)

    async def keep_busy(self, message: Callable[[], Message]) -> None:
        """Show the "busy" sign until cancelled, for at most `BUSY_LIMIT_S`. A failure ends it."""
        assert self._connected is not None, "run() is started first"
        try:
            async with asyncio.timeout(BUSY_LIMIT_S):
                await self._connected.wait()
                while True:
                    await _call(self._functions["busy"], message())
                    await asyncio.sleep(BUSY_S)
        except Exception as error:  # noqa: BLE001  the author's code
            log_error(error)

    async def _receive(self) -> None:
        # recv() is called again only after the host has stored this message, so a channel with a position loses none.
        message = await _call(self._functions["recv"])
        await self._receipts.hand_over(_frame_of(message, self._name))

    async def _until_it_works(self, step: Callable[[], Awaitable[object]]) -> None:
        for delay in _delays():
            try:
                await step()
            except Exception as error:  # noqa: BLE001  the author's code
                log_error(error)
                self._enter("retrying", message_of(error))
            else:
                self._enter("connected")
                return
            await asyncio.sleep(delay)

    def _enter(self, state: str, error: str = "") -> None:
        # Only changes are reported: a retry may fail with the same error for hours.
        if self._state != (state, error):
            self._state = state, error
            frame: Frame = {"type": "channel_state", "channel": self._name, "state": state}
            self._pipe.send({**frame, "error": error} if error else frame)


def _delays() -> Iterator[float]:
    delay = FIRST_DELAY_S
    while True:
        yield delay
        delay = min(2 * delay, MAX_DELAY_S)


async def _call(function: Function, *args: object) -> object:
    """Call a coroutine function on the loop, a plain function in a new thread."""
    result = function(*args) if is_coroutine_function(function) else await _in_thread(function, *args)
    return await result if isinstance(result, Awaitable) else result


async def _in_thread(function: Function, *args: object) -> object:
    # Not asyncio.to_thread: the interpreter waits for its threads at exit, and a plain recv() may never return.
    loop = asyncio.get_running_loop()
    done: asyncio.Future[object] = loop.create_future()

    def finish(value: object, error: BaseException | None) -> None:
        # The thread cannot be stopped, so its result may arrive after a cancellation.
        if done.cancelled():
            return
        if error is None:
            done.set_result(value)
        else:
            done.set_exception(error)

    def work() -> None:
        try:
            outcome: tuple[object, BaseException | None] = function(*args), None
        except Exception as error:  # noqa: BLE001  the author's code
            outcome = None, error
        loop.call_soon_threadsafe(finish, *outcome)

    threading.Thread(target=work, daemon=True).start()
    return await done


def _frame_of(message: object, name: str) -> Frame:
    """Build the frame for any object with the attributes of a `Message`."""
    # Any object with these attributes will do, so that a channel need not import the SDK.
    text, sender = getattr(message, "text", None), getattr(message, "sender", None)
    if not isinstance(text, str) or sender is None:
        raise ContractError(f"recv() returned a {type(message).__name__} without the attributes text and sender")
    frame: Frame = {
        "type": "channel_message",
        "channel": str(getattr(message, "channel", "") or name),
        "sender": str(sender),
        "text": text,
        "metadata": getattr(message, "metadata", None) or {},
    }
    images = [
        image if isinstance(image, Image) else Image.from_bytes(image) for image in getattr(message, "images", ())
    ]
    if images:
        data = [b2a_base64(image.data, newline=False).decode() for image in images]
        frame["images"] = [{"mime_type": image.mime_type, "data": text} for image, text in zip(images, data)]
    return frame
