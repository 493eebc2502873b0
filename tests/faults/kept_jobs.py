"""Jobs of a family that are told to stay: which processes there are of them, whatever was killed."""

import asyncio
import shlex
from collections import Counter
from collections.abc import Callable, Sequence

from zotd.client.fields import text
from zotd.testing.script import CallPart
from zotd.testing.wire_client import WireClient

COUNT = 2

BRIEF = "echo {name} >> {witness}; sleep 0.2; exit 5"
"""Ends by itself, often while no daemon runs."""

LASTING = "echo {name} >> {witness}; exec sleep {seconds}"
"""Goes on until it is stopped; known by `seconds`."""

BRIEF_EXIT = 5

KINDS = ("kept jobs ended", "kept jobs not stopped")


def calls(family: str, witness: str, seconds: int) -> list[CallPart]:
    """Return the calls that begin them."""
    names = {"brief": BRIEF, "kept": LASTING}
    filled = [
        command.format(name=shlex.quote(f"{family} {name}"), witness=witness, seconds=seconds)
        for name, command in names.items()
    ]
    return [CallPart("bash", {"command": command, "background": True, "keep": True}) for command in filled]


def is_brief(job: dict[str, object]) -> bool:
    """Whether the job ends by itself."""
    return job.get("kept") is True and "sleep 0.2" in text(job, "command")


async def look(
    client: WireClient, session: str, jobs: Sequence[dict[str, object]], running: Callable[[], Sequence[int]]
) -> Counter[str]:
    """Look whether they run exactly if their state says so, stop them, and return the faults; the session is closed."""
    faults: Counter[str] = Counter()
    kept = [job for job in jobs if job.get("kept") is True]
    brief = [job for job in kept if is_brief(job)]
    # One that was cut before its supervisor had started never runs: `interrupted`.
    faults[KINDS[0]] += sum(
        (job["state"], job.get("exit")) not in {("ended", BRIEF_EXIT), ("interrupted", None)} for job in brief
    )
    lasting = [job for job in kept if not is_brief(job)]
    wanted = sum(job["state"] == "running" for job in lasting)
    faults[KINDS[0]] += abs(wanted - len(await asyncio.to_thread(running)))
    for job in lasting:
        stopped = await client.ask("session.job_stop", session=session, job=job["id"])
        faults[KINDS[1]] += stopped["state"] == "running"
    return faults
