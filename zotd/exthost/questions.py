"""Questions that an extension asks during one of its tool calls: a person, or the session's model."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress

from zotd.clock import rfc3339
from zotd.core.model_questions import MAX_OUTPUT, ModelQuestion
from zotd.core.person_questions import PersonQuestion
from zotd.core.ports import ToolContext
from zotd.exthost.calls import Answer, Asked, ExtensionCallError, UserOrModelAnswer, unanswered
from zotd.exthost.content import prompt_of
from zotd.wire import ext

MAX_QUESTIONS = 20
"""Most questions of one call; a program could ask without an end."""


class Questions:
    """The questions of one call."""

    def __init__(self, answer: Callable[[UserOrModelAnswer], None], context: ToolContext, *, by: str) -> None:
        """`answer` sends an answer to the extension, whose name for people is `by`."""
        self._answer = answer
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

    def ask(self, question: Asked) -> None:
        """Ask; returns at once."""
        self._count += 1
        if self._tasks is None or self._count > MAX_QUESTIONS:
            self._send(unanswered(question, f"a call may ask {MAX_QUESTIONS} questions"))
            return
        task = self._tasks.create_task(self._asked(question), name=f"question of {self._by}")
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _asked(self, question: Asked) -> None:
        if isinstance(question, ext.AskUser):
            self._send(await self._of_person(question))
        else:
            self._send(await self._of_model(question))

    async def _of_person(self, question: ext.AskUser) -> UserOrModelAnswer:
        if self._context.ask is None:
            return unanswered(question)
        found = await self._context.ask(PersonQuestion(self._by, question.message, question.fields, question.about))
        return ext.UserAnswer(question.id, found.action, dict(found.values))

    async def _of_model(self, question: ext.AskModel) -> UserOrModelAnswer:
        if self._context.ask_model is None:
            return unanswered(question, "the model cannot be asked in this call")
        try:
            messages = prompt_of(question.messages, self._by, rfc3339())
        except ValueError as error:
            return unanswered(question, str(error))
        wanted = ModelQuestion(self._by, messages, question.system, min(question.max_tokens or MAX_OUTPUT, MAX_OUTPUT))
        if wanted.fault:
            return unanswered(question, wanted.fault)
        found = await self._context.ask_model(wanted)
        return ext.ModelAnswer(question.id, found.action, found.text, found.model, found.stop, found.reason)

    def _send(self, answer: UserOrModelAnswer) -> None:
        with suppress(ExtensionCallError):  # over 4 MiB, which neither a person nor a model writes
            self._answer(answer)
