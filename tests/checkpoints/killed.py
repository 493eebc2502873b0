"""A program that restores a checkpoint and kills itself at the n-th point of it: `killed WORK HOME NUMBER POINT`."""

import os
import signal
import sys

from zotd.checkpoints.checkpoints import Checkpoints


def main(work, home, number, point):
    reached = 0

    def probe(name):
        nonlocal reached
        reached += 1
        if reached == int(point):
            os.kill(os.getpid(), signal.SIGKILL)

    checkpoints = Checkpoints(work, home, os.environ, probe=probe)
    checkpoints.restore(checkpoints.find(int(number)))


if __name__ == "__main__":
    main(*sys.argv[1:])
