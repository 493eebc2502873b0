"""Calls about jobs, and what is seen of them, for tests."""

import asyncio
import json
import os
import select

from zotd.testing.script import CallPart

PATIENCE_S = 60
"""For what takes no time unless the machine is very busy."""


def job(command, **args):
    return CallPart("bash", {"command": command, "background": True, **args})


def output(name="j1"):
    return CallPart("job_output", {"job": name})


def wait(name="j1", **args):
    return CallPart("job_wait", {"job": name, "seconds": PATIENCE_S, **args})


def stop(name="j1"):
    return CallPart("job_stop", {"job": name})


def fifo(house, name):
    """A pipe that a job opens: what is written to it wakes the job, what the job writes wakes the test."""
    os.mkfifo(house.cwd / name)
    return house.cwd / name


async def read(path):
    async with asyncio.timeout(PATIENCE_S):
        return await asyncio.to_thread(path.read_text)


async def write(path, said="go\n"):
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.to_thread(path.write_text, said)


async def pid_from(path):
    """The process that has written its pid to this pipe, as a descriptor that becomes readable at its end."""
    return os.pidfd_open(int(await read(path)))


async def is_gone(pidfd):
    """Whether the process has ended, as soon as it has."""
    try:
        ready, _, _ = await asyncio.to_thread(select.select, [pidfd], [], [], PATIENCE_S)
    finally:
        os.close(pidfd)
    return bool(ready)


def told(request):
    """What a request says of jobs that have ended."""
    found = json.dumps(request.messages)
    return [part.split("]")[0] for part in found.split("[Job ")[1:]]


def plain(found):
    """Tool results as text, whatever a vendor makes of them."""
    return [json.loads(one)[0]["text"] if one.startswith("[{") else one for one in found]


async def ended(talk):
    """Events up to the end of a job."""
    events = await talk.until("job")
    while events[-1]["job"]["state"] == "running":
        events += await talk.until("job")
    return events[-1]["job"]


STUBBORN = "trap '' TERM INT HUP; (trap '' TERM; exec setsid sh -c 'echo $$ > left; exec sleep 600') & echo $$ > main; while :; do sleep 600; done"
"""Ignores signals, and has a process that leaves the group."""


async def begun_stubborn(house, talk):
    main, left = fifo(house, "main"), fifo(house, "left")
    await talk.ask("prompt", message="go")
    found = [await pid_from(left), await pid_from(main)]
    await talk.until("done")
    return found
