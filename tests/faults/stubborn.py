"""An extension that ignores everything and forks twice: `python stubborn.py NAME FIFO`.

Three processes come of it: the extension, a child in its group, and a grandchild in a session of its own that holds none
of its files. Each writes its pid into the FIFO and then does nothing, whatever is asked, said or sent to it.
"""

import json
import os
import signal
import sys

UNSTOPPABLE = {signal.SIGKILL, signal.SIGSTOP}


def main() -> None:
    """Greet, so that the host takes it for a good one, and multiply."""
    name, fifo = sys.argv[1:]
    for number in signal.valid_signals() - UNSTOPPABLE:
        signal.signal(number, signal.SIG_IGN)
    for frame in ({"type": "hello", "name": name}, {"type": "ready"}):
        os.write(1, json.dumps(frame).encode() + b"\n")
    if os.fork() == 0 and os.fork() == 0:
        os.setsid()
        os.closerange(0, 3)
    with open(fifo, "wb", buffering=0) as told:  # noqa: PTH123  (with -S, pathlib would be half of the start)
        told.write(b"%d\n" % os.getpid())
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
