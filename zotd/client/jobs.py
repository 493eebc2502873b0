"""What people read of a job."""

from collections.abc import Sequence

from zotd.client.humanize import duration, took
from zotd.wire.jobs import ENDED, INTERRUPTED, RUNNING, JobInfo


def state_words(job: JobInfo) -> str:
    """Return what a job does, or how it has ended: `running 3m 05s`, `running 2h (kept)`, `exit 1 after 2.4s`, `stopped by ann after 12s`."""
    if job.state == RUNNING:
        kept = " (kept)" if job.kept else ""
        return f"running{kept}" if job.took_s is None else f"running {duration(job.took_s)}{kept}"
    if job.state == INTERRUPTED:
        return "interrupted, outcome unknown"
    how = f"exit {job.exit}" if job.exit is not None else "ended"
    if job.reason:
        how = f"not started: {job.reason}" if job.state == ENDED else job.reason
    return how if job.took_s is None else f"{how} after {took(job.took_s)}"


def places(ports: Sequence[int]) -> str:
    """Return the ports as addresses of this machine, such as `localhost:8080`; empty if there are none."""
    return " ".join(f"localhost:{port}" for port in ports)
