"""Has a command of `bash` run as a job."""

from collections.abc import Sequence
from typing import Protocol

from msgspec import UNSET, UnsetType

from zotd.core.jobs import NONE_HERE, JobError, JobOrder
from zotd.core.ports import ToolContext, ToolOutcome
from zotd.tools.shared.builtin import ToolError, text_outcome


class JobArgs(Protocol):
    """Arguments of `bash`."""

    @property
    def command(self) -> str:
        """The command."""
        ...

    @property
    def timeout(self) -> float | UnsetType:
        """A time limit, which a job cannot have."""
        ...

    @property
    def background(self) -> bool:
        """It is to run as a job."""
        ...

    @property
    def keep(self) -> bool:
        """The job goes on when the session ends."""
        ...


async def begin_job(args: JobArgs, argv: Sequence[str], context: ToolContext) -> ToolOutcome:
    """Start the job; returns what the model is told. Raises ToolError."""
    if not args.background:
        raise ToolError("only a job can be kept: set background as well")
    if args.timeout is not UNSET:
        raise ToolError("a job has no timeout: leave it out, and end the job with job_stop")
    if context.jobs is None:
        raise ToolError(NONE_HERE)
    if args.keep and context.jail is not None:
        # A jail takes back what it has allowed, and closes its network, when the session ends.
        raise ToolError("a command in a jail cannot be kept, because its jail ends with the session: leave keep out")
    order = JobOrder(
        context.call_id, args.command, argv, context.cwd, context.env, context.out_dir, context.jail, args.keep
    )
    try:
        return text_outcome(await context.jobs.begin(order))
    except JobError as error:
        raise ToolError(str(error)) from error
    except OSError as error:
        where = f" in {context.cwd}" if error.filename == context.cwd else ""
        raise ToolError(f"the command could not be started{where}: {(error.strerror or '').lower()}") from error
    except ValueError as error:
        raise ToolError("the command or the environment contains a NUL; leave it out") from error
