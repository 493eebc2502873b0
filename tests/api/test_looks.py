"""Looking at directories that may never answer."""

import asyncio
import threading

from zotd.api.methods.completion import look


async def test_those_that_hang_take_no_more_threads_than_they_may():
    room, free = asyncio.Semaphore(1), threading.Event()
    begun = []

    def hang():
        begun.append(True)
        return free.wait()

    async with asyncio.TaskGroup() as tasks:
        asked = [tasks.create_task(look(room, hang)) for _ in range(3)]
    free.set()  # before anything can fail: the loop waits for its threads
    assert [one.result() for one in asked] == [None, None, None]
    assert len(begun) == 1
    assert await look(room, lambda: "found") == "found"
