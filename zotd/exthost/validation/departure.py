"""How an extension ends when zot dies: its stdin ends, and nobody is there to kill what it leaves behind.

The daemon's own `Service` kills the group at the moment of the exit, which hides what is to be seen here.
"""

import asyncio
import os
import subprocess
from dataclasses import dataclass

import psutil

from zotd.core.supervision import HELLO_S, LEAVE_S
from zotd.exthost.manifest import Manifest
from zotd.exthost.process import how_it_ended
from zotd.exthost.surroundings import Surroundings
from zotd.process import spawn

LAST_GASP_S = 0.5
"""For children of the extension that end because it has: they learn it from a pipe or a signal."""

SHOWN = 3
"""Processes that are named."""

COMMAND_CHARS = 60


@dataclass(frozen=True, slots=True)
class Departure:
    """An end."""

    exit: str
    """How it ended; empty when it had to be killed."""
    left: tuple[str, ...]
    """The commands of processes of its group that were still there."""


async def depart(manifest: Manifest, surroundings: Surroundings) -> Departure:
    """Start it, and close its stdin when it has begun to speak. Nothing of its group is alive afterwards."""
    readable, writable = os.pipe()
    has_spoken = asyncio.Event()
    try:
        child = spawn(
            manifest.argv,
            cwd=str(manifest.directory),
            env=surroundings.env,
            on_output=lambda _: has_spoken.set(),
            stdin=readable,
            stderr=subprocess.DEVNULL,
        )
    except BaseException:
        os.close(writable)
        raise
    finally:
        os.close(readable)
    async with child:
        try:
            async with asyncio.timeout(HELLO_S):
                await has_spoken.wait()
        except TimeoutError:
            pass  # then it ends now or is killed
        finally:
            os.close(writable)
        try:
            async with asyncio.timeout(LEAVE_S):
                code = await child.wait()
        except TimeoutError:
            return Departure("", ())
        left = await asyncio.to_thread(_end_group, child.pid)
        return Departure(how_it_ended(code), left)


def _end_group(group: int) -> tuple[str, ...]:
    """Kill what is still there of a group whose leader has ended; the commands."""
    members = [process for process in psutil.process_iter() if _is_in(group, process)]
    _, left = psutil.wait_procs(members, timeout=LAST_GASP_S)
    commands = []
    for process in left:
        try:
            commands.append(" ".join(process.cmdline())[:COMMAND_CHARS])
            process.kill()
        except psutil.NoSuchProcess:
            continue
    return tuple(commands)


def _is_in(group: int, process: psutil.Process) -> bool:
    try:
        return os.getpgid(process.pid) == group and process.status() != psutil.STATUS_ZOMBIE
    except (OSError, psutil.Error):
        return False  # it has ended, or is somebody else's
