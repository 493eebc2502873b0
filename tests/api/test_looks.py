"""Access to directories that may never respond."""

import asyncio
import threading

from zotd.api.methods.completion import look


async def test_hanging_lookups_use_a_limited_number_of_threads():
    room, free = asyncio.Semaphore(1), threading.Event()
    begun = []

    def hang():
        begun.append(True)
        return free.wait()

    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(look(room, hang)) for _ in range(3)]
    free.set()  # before any assertion can fail, because the loop waits for its threads
    assert [one.result() for one in asked] == [None, None, None]
    assert len(begun) == 1
    assert await look(room, lambda: "found") == "found"
