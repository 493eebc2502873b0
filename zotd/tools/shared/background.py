"""Has a command of `bash` run as a job."""

from collections.abc import Sequence

from zotd.core.jobs import NONE_HERE, JobError, JobOrder
from zotd.core.ports import ToolContext, ToolOutcome
from zotd.tools.shared.builtin import ToolError, text_outcome


async def begin_job(command: str, argv: Sequence[str], context: ToolContext) -> ToolOutcome:
    """Start the job; returns what the model is told. Raises ToolError."""
    if context.jobs is None:
        raise ToolError(NONE_HERE)
    order = JobOrder(context.call_id, command, argv, context.cwd, context.env, context.out_dir, context.jail)
    try:
        return text_outcome(await context.jobs.begin(order))
    except JobError as error:
        raise ToolError(str(error)) from error
    except OSError as error:
        where = f" in {context.cwd}" if error.filename == context.cwd else ""
        raise ToolError(f"the command could not be started{where}: {(error.strerror or '').lower()}") from error
    except ValueError as error:
        raise ToolError("the command or the environment contains a NUL; leave it out") from error
