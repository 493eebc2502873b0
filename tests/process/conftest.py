import asyncio
import os

import pytest


@pytest.fixture
def ended():
    """Waits until a process, which need not be a child, has ended; a zombie has."""

    async def wait(pid: int) -> None:
        try:
            fd = os.pidfd_open(pid)
        except ProcessLookupError:
            return
        event = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(fd, event.set)
        try:
            async with asyncio.timeout(5):
                await event.wait()
        finally:
            loop.remove_reader(fd)
            os.close(fd)

    return wait
