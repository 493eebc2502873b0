"""The tools for jobs, which `bash` begins in the background: `job_output`, `job_wait` and `job_stop`."""

from collections.abc import Awaitable
from typing import Annotated

import msgspec
from msgspec import Meta

from zotd.core.jobs import BY_MODEL, NONE_HERE, JobDesk, JobError
from zotd.core.ports import Replay, ToolContext, ToolOutcome
from zotd.tools.shared import TEXT_BYTES, BuiltinTool, ToolError, text_outcome

NAMES = ("job_output", "job_stop", "job_wait")

WAIT_S = 60.0
"""How long `job_wait` waits by default, in seconds."""

JobId = Annotated[str, Meta(description="The job's id, such as j1")]


class JobOutputArgs(msgspec.Struct, frozen=True):
    """Arguments of `job_output`."""

    job: JobId


class JobWaitArgs(msgspec.Struct, frozen=True):
    """Arguments of `job_wait`."""

    job: JobId
    pattern: Annotated[
        str,
        Meta(
            description="Text that a line has; * stands for any text, | separates alternatives. Default: wait for the end"
        ),
    ] = ""
    seconds: Annotated[float, Meta(gt=0, description=f"Longest wait; default: {WAIT_S:g}")] = WAIT_S


class JobStopArgs(msgspec.Struct, frozen=True):
    """Arguments of `job_stop`."""

    job: JobId


async def _output(args: JobOutputArgs, context: ToolContext) -> ToolOutcome:
    return await _answered(_desk(context).output(args.job))


async def _wait(args: JobWaitArgs, context: ToolContext) -> ToolOutcome:
    return await _answered(_desk(context).wait(args.job, args.pattern, args.seconds))


async def _stop(args: JobStopArgs, context: ToolContext) -> ToolOutcome:
    desk = _desk(context)
    await desk.end(args.job.strip(), BY_MODEL)
    return await _answered(desk.output(args.job))


def _desk(context: ToolContext) -> JobDesk:
    if context.jobs is None:
        raise ToolError(NONE_HERE)
    return context.jobs


async def _answered(told: Awaitable[str]) -> ToolOutcome:
    try:
        return text_outcome(await told)
    except JobError as error:
        raise ToolError(str(error)) from error


OUTPUT = BuiltinTool(
    JobOutputArgs,
    _output,
    name="job_output",
    description=(
        "Read what a job has printed since you last read it, and whether it runs. Of long output the beginning and the end are"
        f" shown ({TEXT_BYTES // 1024} KiB)."
    ),
    parallel=True,
    replay=Replay.SAFE,
)

STOP = BuiltinTool(
    JobStopArgs,
    _stop,
    name="job_stop",
    description="End a job with all that it has started, and read the rest of its output.",
    parallel=True,
    # Harmless when it is repeated: a job that has ended stays as it is.
    replay=Replay.SAFE,
)

WAIT = BuiltinTool(
    JobWaitArgs,
    _wait,
    name="job_wait",
    description=(
        "Wait until a job has ended or has printed a line, and read what it has printed since you last read it. Not needed to"
        " learn that it has ended: you are told."
    ),
    parallel=True,
    replay=Replay.SAFE,
)
