"""Commands about the jobs of a session."""

from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import session_of
from zotd.core.jobs import JobError
from zotd.wire import api
from zotd.wire.errors import Code, CommandError
from zotd.wire.jobs import RUNNING, JobInfo

BY = "stopped by {sender}"


async def listing(call: Invocation, params: api.OfSession) -> api.JobList:
    """Return the jobs."""
    return api.JobList(await (await session_of(call, params.session)).jobs.look())


async def move(call: Invocation, params: api.JobMove) -> JobInfo:
    """Send a running command to the background for a person."""
    try:
        return await (await session_of(call, params.session)).jobs.move(params.call)
    except JobError as error:
        raise CommandError(Code.CONFLICT, str(error)) from error


async def stop(call: Invocation, params: api.JobStop) -> JobInfo:
    """End a job for a person; it has ended when the response goes out."""
    jobs = (await session_of(call, params.session)).jobs
    try:
        job = jobs.find(params.job)
    except JobError as error:
        raise CommandError(Code.NOT_FOUND, str(error)) from error
    await jobs.end(job.id, BY.format(sender=call.door.sender or "the user"))
    ended = jobs.find(job.id)
    if ended.state == RUNNING:
        raise CommandError(Code.TIMEOUT, f"{job.id} does not end; try again")
    return ended
