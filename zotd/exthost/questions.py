"""Questions that an extension asks a person during one of its tool calls."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress

from zotd.core.person_questions import PersonQuestion
from zotd.core.ports import ToolContext
from zotd.exthost.calls import Answer, ExtensionCallError
from zotd.exthost.peer import ExtensionPeer
from zotd.wire import ext

MAX_QUESTIONS = 20
"""Most questions of one call; a program could ask without an end."""


class Questions:
    """The questions of one call."""

    def __init__(self, peer: ExtensionPeer, context: ToolContext, *, by: str) -> None:
        """`by`: the name of the extension, for people."""
        self._peer = peer
        self._context = context
        self._by = by
        self._tasks: asyncio.TaskGroup | None = None
        self._open: set[asyncio.Task[None]] = set()
        self._count = 0

    async def during(self, call: Coroutine[object, object, Answer]) -> Answer:
        """Wait for the answer to the call, and have its questions answered meanwhile; with it, they are over.

        Raises what the call raises.
        """
        failure: ExtensionCallError | None = None
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                return await call
            except ExtensionCallError as error:
                failure = error  # raised below: the group would wrap it
            finally:
                self._tasks = None
                for task in self._open:
                    task.cancel()
        assert failure is not None
        raise failure

    def ask(self, question: ext.AskUser) -> None:
        """Ask a person; returns at once."""
        self._count += 1
        if self._tasks is None or self._context.ask is None or self._count > MAX_QUESTIONS:
            self._answer(question.id, "cancel", {})
            return
        task = self._tasks.create_task(self._asked(question), name=f"question of {self._by}")
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _asked(self, question: ext.AskUser) -> None:
        ask = self._context.ask
        assert ask is not None
        found = await ask(PersonQuestion(self._by, question.message, question.fields, question.about))
        self._answer(question.id, found.action, dict(found.values))

    def _answer(self, key: str, action: str, values: dict[str, object]) -> None:
        with suppress(ExtensionCallError):  # over 4 MiB, which no person writes
            self._peer.send(ext.UserAnswer(key, action, values))
