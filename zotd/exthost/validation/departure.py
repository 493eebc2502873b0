"""Checks how an extension ends when zot dies: its stdin ends, and no daemon kills its child processes.

This does not use the daemon's `Service`, which kills the group at the exit and would hide children that stay.
"""

import asyncio
import os
import subprocess
from dataclasses import dataclass

import psutil

from zotd.core.supervision import HELLO_S, LEAVE_S
from zotd.exthost.launch import confined_argv
from zotd.exthost.manifest import Manifest
from zotd.exthost.process import how_it_ended
from zotd.exthost.surroundings import Surroundings
from zotd.process import spawn

LAST_GASP_S = 0.5
"""Time for children to notice the end of the extension from a pipe or a signal, and to end themselves."""

SHOWN = 3
"""Number of remaining processes that are named."""

COMMAND_CHARS = 60


@dataclass(frozen=True, slots=True)
class Departure:
    """How an extension ended after the end of its stdin."""

    exit: str
    """Description of the exit; empty if it had to be killed."""
    left: tuple[str, ...]
    """Command lines of processes of its group that were still running."""


async def depart(manifest: Manifest, surroundings: Surroundings) -> Departure:
    """Start it and close its stdin after its first output. Its whole group is ended afterwards."""
    readable, writable = os.pipe()
    has_spoken = asyncio.Event()
    try:
        child = spawn(
            await confined_argv(manifest, surroundings, lambda _: None),
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
        # Only the child may hold the reading end; otherwise it would not be alone on the pipe.
        os.close(readable)
    async with child:
        try:
            async with asyncio.timeout(HELLO_S):
                await has_spoken.wait()
        except TimeoutError:
            pass  # a silent program is checked too: it may still end properly
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
    """Kill the remaining processes of a group whose leader has ended; return their command lines."""
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
        return False  # it has ended, or belongs to another user
