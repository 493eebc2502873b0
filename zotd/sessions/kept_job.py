"""A job that goes on when its session or the daemon ends: a supervisor runs its command. Loaded with the first one.

start ──> followed ──> the daemon ends ──> goes on, or ends ──> adopted by the next one ──> followed ──> on record
"""

import asyncio
import logging
from pathlib import Path

from msgspec.structs import replace

from zotd.core.jobs import NOT_STARTED, JobOrder
from zotd.core.output_pattern import LineFinder
from zotd.process.orphan_reaper import OrphanReaper
from zotd.process.supervised_command import SupervisedCommand, adopt, happened, start_supervised, state_path
from zotd.process.supervisor_state import SupervisorOrder
from zotd.sessions.job_run import MIB, SEARCHED_BYTES, JobRun
from zotd.tools.shared import in_thread
from zotd.wire.jobs import ENDED, INTERRUPTED, JobInfo

log = logging.getLogger(__name__)

LOOK_S = 0.1
"""Pause between two looks at the output while the model waits for a line, in seconds."""


class KeptRun(JobRun):
    """A kept job that this daemon follows."""

    def __init__(self, info: JobInfo, command: SupervisedCommand, reaper: OrphanReaper) -> None:
        """`reaper` ends what a supervisor leaves that was killed."""
        super().__init__(info, command, None, set())
        self._kept = command
        self._reaper = reaper

    @property
    def has_ended(self) -> bool:
        """Whether it runs no more, although its end is not recorded yet."""
        return self._kept.has_ended

    @property
    def outlasts(self) -> bool:
        """See `JobRun`."""
        return self._kept.is_left

    @property
    def took_s(self) -> float:
        """See `JobRun`."""
        return self._kept.took_s

    def leave(self) -> None:
        """See `JobRun`."""
        self._kept.leave()

    def ended(self) -> JobInfo:
        """See `JobRun`."""
        if self._kept.is_lost:
            # What the supervisor has left is in its own part of the ledger of children.
            self._reaper.sweep(spares_kept=True)
            if not self.reason:
                return replace(self.info, state=INTERRUPTED, ports=[])
        if error := self._kept.state.error:
            return replace(self.info, state=ENDED, exit=NOT_STARTED, reason=error, ports=[])
        return super().ended()

    async def wait(self, finder: LineFinder | None, start: int, at_most_s: float) -> str | None:
        """See `JobRun`. The output is read every `LOOK_S`: it is another process that writes it."""
        try:
            async with asyncio.timeout(at_most_s):
                return await self._fitting(finder, start)
        except TimeoutError:
            return None

    async def _fitting(self, finder: LineFinder | None, start: int) -> str | None:
        start = max(start, self.output.total - SEARCHED_BYTES)
        is_over = False
        while True:
            part = await asyncio.to_thread(self.output.read, start, SEARCHED_BYTES)
            start = part.start + len(part.data)
            if finder is not None and (line := finder.feed(part.data)) is not None:
                return line
            if not part.data:
                if is_over:
                    return None
                # Read once more after the end: the last output may have come since.
                is_over = await happened(self.over, LOOK_S)


def start_kept_job(info: JobInfo, order: JobOrder, reaper: OrphanReaper, *, session: str, output_mb: int) -> KeptRun:
    """Start the supervisor of a job; the caller runs `SupervisedCommand.follow`. Raises OSError if it cannot be started."""
    output = Path(info.output)
    supervisor = SupervisorOrder(
        home=str(reaper.home),
        what=f"job {info.id} of {session}",
        argv=order.argv,
        cwd=order.cwd,
        env=order.env,
        output=info.output,
        limit_bytes=output_mb * MIB,
        state=str(state_path(output)),
    )
    return KeptRun(info, start_supervised(supervisor, (session,)), reaper)


async def adopt_job(info: JobInfo, reaper: OrphanReaper, *, session: str) -> KeptRun | None:
    """Return a job that an earlier daemon has begun; the caller follows it. None: its state cannot be read now."""
    try:
        return KeptRun(info, await in_thread(lambda _: adopt(Path(info.output), (session,))), reaper)
    except OSError as error:
        log.warning("job %s of %s cannot be followed: %s", info.id, session, error)
        return None
