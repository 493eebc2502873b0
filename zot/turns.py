"""Which run of an agent is under way, and where: one after another, in one event loop of one process."""

import asyncio
import os
import threading
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Self

from zot.errors import AgentBusyError, AgentError

LEAVE_S = 10.0
"""Longest wait for the end of a run whose stream was left, in seconds. A tool that ignores its end takes 2 s."""


@dataclass(frozen=True, slots=True)
class AgentPlace:
    """A process and an event loop in it."""

    pid: int
    loop: asyncio.AbstractEventLoop

    @classmethod
    def here(cls) -> Self:
        """Where the caller runs."""
        return cls(os.getpid(), asyncio.get_running_loop())

    def check(self) -> None:
        """Raise AgentError if the caller runs elsewhere: an open session belongs to its loop."""
        if self.pid != os.getpid():
            raise AgentError("this agent was opened before the process forked; make another one in the new process")
        if self.loop is not asyncio.get_running_loop():
            raise AgentError("this agent was opened in another event loop; use it there, or make another one here")


class AgentTurn:
    """One run, from its first event to its end."""

    def __init__(self) -> None:
        self.left = threading.Event()
        """Nothing can read its stream any more."""
        self.over = asyncio.Event()

    def watch(self, stream: object) -> None:
        """Notice when Python drops the stream."""
        weakref.finalize(stream, self.left.set).atexit = False


class AgentTurns:
    """Lets one run at a time take its turn. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._current: AgentTurn | None = None

    @asynccontextmanager
    async def take(self, turn: AgentTurn) -> AsyncIterator[None]:
        """Hold the turn for the block. A run whose stream was left is waited for.

        Raises:
            AgentBusyError: another run is under way.
        """
        before = self._current
        if before is not None and before.left.is_set():
            try:
                async with asyncio.timeout(LEAVE_S):
                    await before.over.wait()
            except TimeoutError:
                raise AgentBusyError(f"the run before this one has not ended within {LEAVE_S:g} s") from None
        if not self._lock.acquire(blocking=False):
            raise AgentBusyError("this agent is answering another prompt; wait for it, or use another agent")
        self._current = turn
        try:
            yield
        finally:
            self._current = None
            self._lock.release()
            turn.over.set()
