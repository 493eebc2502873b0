"""A command that a tool runs, as a person may send it to the background."""

import asyncio
from collections.abc import Callable

from msgspec import Struct

from zotd.core.call_jail import CallJail
from zotd.process import Child


class RunningCommand(Struct):
    """A command that runs; satisfies `core.jobs.MovableCommand`."""

    command: str
    out_dir: str
    jail: CallJail | None
    child: Child
    text: Callable[[], str]
    """Returns its output until now, in the form of a result."""
    patience: asyncio.Timeout
    """Ends the call."""
    is_over: bool = False
    """The call has ended."""
    job: str = ""
    """The job that it has become."""
    take: Callable[[bytes], None] | None = None
    """Takes its output then."""

    @property
    def has_ended(self) -> bool:
        """See `MovableCommand`."""
        return self.is_over or self.child.returncode is not None or self.patience.expired() or bool(self.job)

    def hand_over(self, job: str, take: Callable[[bytes], None]) -> str:
        """End the call, and have the command go on as this job; returns what the model reads of its output until now.

        `has_ended` is False. The caller takes care of `child` from now on.
        """
        self.job, self.take = job, take
        self.child.hand_over()
        self.patience.reschedule(asyncio.get_running_loop().time())
        return self.text()
