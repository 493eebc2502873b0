"""Watches on which ports the jobs of a session listen. Loaded with the first job.

    a job prints something ──> LOOK_S later, and not more often than that ──> look ──> another port ──> `changed`

A server says that it serves when it does. One that says nothing is found when somebody asks about the jobs.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping

from zotd.process.listening import listening_ports
from zotd.sessions.job_run import JobRun

LOOK_S = 0.5
"""From an output to the look, in seconds: a server may print before it listens."""


class JobPorts:
    """Of one session. Used on its event loop."""

    def __init__(
        self,
        running: Mapping[str, JobRun],
        spawn: Callable[[str, Coroutine[object, object, None]], None],
        changed: Callable[[str, list[int]], None],
    ) -> None:
        """`running` are the jobs that run at any moment; `changed` is called with a job and its ports when they have changed."""
        self._running = running
        self._spawn = spawn
        self._changed = changed
        self._is_due = False

    def printed(self) -> None:
        """A job has printed something."""
        if not self._is_due:
            self._is_due = True
            asyncio.get_running_loop().call_later(LOOK_S, self._spawn_look)

    async def look(self) -> None:
        """Look now."""
        runs = dict(self._running)
        if not runs:
            return
        found = await asyncio.to_thread(listening_ports, {run.command.pid: run.command.mark for run in runs.values()})
        for job, run in runs.items():
            if run.listens_on(found[run.command.pid]) and job in self._running:
                self._changed(job, run.ports)

    def _spawn_look(self) -> None:
        self._is_due = False
        if self._running:
            self._spawn("a look at the ports of jobs", self.look())
