"""Subagents for which no call waits: each is a job of its session, and goes on after a restart.

    call of `task` ──> its session ──> a job on record ──> the call is over
                                            └──> the subagent works ──> its answer is on record, and told to the model

After a crash the session of the subagent has what it has done, and the job still counts as running. With the next run of the parent,
or at once with `resume = "auto"`, it is followed again: an answer that is there is told, and a run that was cut goes on.
"""

from collections.abc import Callable
from functools import partial

import msgspec
from msgspec.structs import replace

from zotd.core.jobs import JobError
from zotd.core.ports import StorageError, ToolContext, ToolOutcome
from zotd.core.subagents import TaskOrder
from zotd.runs.queue import SubmitRequest
from zotd.sessions.manager import Manager
from zotd.sessions.session import Session
from zotd.sessions.subagents import Subagents, unable
from zotd.tools.task import TaskArgs, order_of
from zotd.wire.content import Text, ToolCall
from zotd.wire.errors import CommandError
from zotd.wire.jobs import JobInfo

NOT_BEGUN = "the subagent was cut before it had begun, and its prompt is not known any more; call task again"


class BackgroundSubagents:
    """Has the subagents of all sessions work in the background."""

    def __init__(self, manager: Manager, subagents: Subagents) -> None:
        self._manager = manager
        self._subagents = subagents

    async def begin(self, parent: Session, order: TaskOrder, context: ToolContext) -> ToolOutcome:
        """Begin a subagent, and return what the model is told at once; a repeated call finds what it has begun."""
        if (refusal := self._subagents.refusal(parent, context.call_id)) is not None:
            return refusal
        try:
            found = next((job for job in parent.jobs.infos if job.call == context.call_id), None)
            if found is not None:
                await self.resume(parent)
                return ToolOutcome(
                    [Text(f"{found.id} was begun before the restart; you are told its answer when it has one")]
                )
            child = await self._subagents.child_of(parent, order, context)
            try:
                told = await parent.jobs.begin_task(
                    context.call_id,
                    order.description,
                    child=child.id,
                    out_dir=context.out_dir,
                    work=partial(self._work, parent, child, order=order, context=context),
                )
            except JobError:
                await self._manager.delete(child)  # nobody has seen it yet
                raise
        except JobError as error:
            return ToolOutcome.error(str(error))
        except (CommandError, StorageError) as error:
            return unable(error)
        return ToolOutcome([Text(told)])

    async def resume(self, parent: Session) -> None:
        """Follow the subagents again that an earlier daemon has begun; the session is loaded."""
        make = await self._manager.planner.tool_context(parent)
        parent.jobs.resume_tasks(lambda job: partial(self._go_on, parent, job, make(job.call, _unheard)))

    async def _work(
        self, parent: Session, child: Session, tell: Callable[[str], None], *, order: TaskOrder, context: ToolContext
    ) -> ToolOutcome:
        try:
            async with self._subagents.place(parent, tell):
                return await self._subagents.work(parent, child, order, replace(context, progress=tell))
        except (CommandError, StorageError) as error:
            return unable(error)

    async def _go_on(
        self, parent: Session, job: JobInfo, context: ToolContext, tell: Callable[[str], None]
    ) -> ToolOutcome:
        try:
            child = await self._manager.get(job.session)
            await child.load()
        except (CommandError, StorageError) as error:
            return unable(error)
        order = _order_of(parent, job)
        if order is None and SubmitRequest(id=job.call).known(child.ledger.transcript) is None:
            return ToolOutcome.error(NOT_BEGUN)
        return await self._work(parent, child, tell, order=order or TaskOrder("", job.command), context=context)


def _order_of(parent: Session, job: JobInfo) -> TaskOrder | None:
    """Return what the call asked for; None: the transcript was shortened since."""
    for message in parent.ledger.transcript.messages:
        for block in message.content:
            if isinstance(block, ToolCall) and block.id == job.call:
                return order_of(msgspec.convert(block.args, TaskArgs))
    return None


def _unheard(_: str) -> None:
    """The call is over; the job has the progress."""
