"""Keeps a context open in a task of its own."""

import asyncio
from contextlib import AbstractAsyncContextManager
from typing import Generic, Self, TypeVar

T = TypeVar("T")


class HeldContext(Generic[T]):
    """A context that is entered and left by one task, on behalf of any other.

    A task group has to be left by the task that entered it, and a stream may be closed by another task than began it.
    """

    def __init__(self, value: T, owner: asyncio.Task[None], leaving: asyncio.Event) -> None:
        """Use `enter`. `owner` has entered the context, and leaves it when `leaving` is set."""
        self.value = value
        """What the context has yielded."""
        self._owner = owner
        self._leaving = leaving

    @classmethod
    async def enter(cls, context: AbstractAsyncContextManager[T]) -> Self:
        """Enter the context; raises what that raises. Cancelled, it leaves nothing open."""
        loop = asyncio.get_running_loop()
        entered: asyncio.Future[T] = loop.create_future()
        leaving = asyncio.Event()
        owner = loop.create_task(_own(context, entered, leaving), name="zot agent")
        try:
            return cls(await asyncio.shield(entered), owner, leaving)
        except BaseException:
            owner.cancel()
            await asyncio.wait([owner])
            raise

    async def leave(self) -> None:
        """Leave the context, and wait for that. Cancelled, the caller does not wait, but the context is still left."""
        self._leaving.set()
        await asyncio.shield(self._owner)


async def _own(context: AbstractAsyncContextManager[T], entered: asyncio.Future[T], leaving: asyncio.Event) -> None:
    try:
        async with context as value:
            entered.set_result(value)
            await leaving.wait()
    except Exception as error:
        if entered.done():
            raise
        entered.set_exception(error)
