"""Calls functions of the program that block, such as its tools, in threads of their own."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial


async def in_thread(work: Callable[[], object]) -> object:
    """Call `work` in a daemon thread, so that one that hangs neither occupies a pool nor prevents the exit."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[object] = loop.create_future()

    def settle(value: object, error: BaseException | None) -> None:
        if future.done():  # cancelled meanwhile
            return
        if error is None:
            future.set_result(value)
        else:
            future.set_exception(error)

    def run() -> None:
        try:
            outcome = partial(settle, work(), None)
        except BaseException as error:  # noqa: BLE001  (sys.exit() in a tool must not leave its call without a result)
            # A future takes no StopIteration, and the others would end the loop.
            is_plain = isinstance(error, Exception) and not isinstance(error, StopIteration)
            told = error if is_plain else RuntimeError(f"it raised {type(error).__name__} {error}".rstrip())
            outcome = partial(settle, None, told)
        with suppress(RuntimeError):  # the loop was closed: the program has stopped waiting
            loop.call_soon_threadsafe(outcome)

    threading.Thread(target=contextvars.copy_context().run, args=[run], name="zot tool", daemon=True).start()
    return await future
