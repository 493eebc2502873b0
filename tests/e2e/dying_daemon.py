"""A daemon that kills itself when it comes to a point of its work: `dying_daemon POINT`, and then the words of a usual start."""

import asyncio
import os
import signal
import sys
from functools import partial

from zotd.app import Daemon, prepare


def probe(point, name):
    if name == point:
        os.kill(os.getpid(), signal.SIGKILL)


async def serve(point, ready_fd):
    ready = asyncio.get_running_loop().create_future()
    ready.add_done_callback(lambda _: os.write(ready_fd, f"ready {os.getpid()}\n".encode()))
    setup = prepare(dict(os.environ), autostarted=False, flags={})
    await Daemon(setup, partial(probe, point)).run(ready)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[-1])))
