"""What the session has besides its conversation, as events change it: the plan and the jobs. Pure: the time is an argument."""

from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from zotd.client.jobs import state_words
from zotd.wire import events
from zotd.wire.jobs import ENDED, RUNNING, STOPPED, JobInfo
from zotd.wire.plan import PROPOSED
from zottui.blocks import Block, NoteLine
from zottui.state import LiveJob, ViewState

Changed = tuple[ViewState, Sequence[Block]]
"""The next state, and what is printed."""


def plan_changed(state: ViewState, event: events.PlanChanged) -> Changed:
    """Apply an edit of the plan; that of another person is told."""
    before, plan = state.plan, event.plan
    state = replace(state, plan=plan, planning=event.planning)
    was_decided = before is not None and before.status == PROPOSED
    if plan is None or not plan.by or was_decided or (before is not None and before.revision == plan.revision):
        return state, ()
    return state, (NoteLine(f"the plan was changed by {plan.by}"),)


def job_changed(state: ViewState, event: events.JobChanged | events.JobPortsChanged, now: float) -> Changed:
    """Apply the beginning or the end of a job, or the ports on which it listens. Its end is told."""
    if isinstance(event, events.JobPortsChanged):
        jobs = tuple(_with_ports(job, event.ports) if job.info.id == event.job else job for job in state.jobs)
        return replace(state, jobs=jobs), ()
    job = event.job
    others = tuple(one for one in state.jobs if one.info.id != job.id)
    if job.state == RUNNING:
        return replace(state, jobs=(*others, LiveJob(job, now))), ()
    line = NoteLine(f"job {job.id} ({_title(job)}): {state_words(job)}", _level(job))
    return replace(state, jobs=others), (line,)


def live_jobs(jobs: Sequence[JobInfo], now: float) -> tuple[LiveJob, ...]:
    """Return those of a snapshot that run."""
    return tuple(LiveJob(job, now - (job.took_s or 0.0)) for job in jobs if job.state == RUNNING)


def _level(job: JobInfo) -> str:
    if job.state == STOPPED:  # as somebody wanted
        return "info"
    return "success" if job.state == ENDED and job.exit == 0 else "warn"


def _with_ports(job: LiveJob, ports: list[int]) -> LiveJob:
    return replace(job, info=structs.replace(job.info, ports=ports))


def _title(job: JobInfo) -> str:
    return " ".join(job.command.split())
