"""A program that does what its first argument says, to be run by a template process and by the interpreter alike."""

import json
import os
import signal
import sys
import time
from pathlib import Path


def main():  # noqa: C901  (a case for each thing that a program does)
    match sys.argv[1]:
        case "describe":
            sys.stdout.write(json.dumps(describe(), sort_keys=True))
        case "exit":
            return int(sys.argv[2])
        case "system-exit":
            sys.exit("a sentence")
        case "raise":
            raise ValueError(sys.argv[2])
        case "kill":
            os.kill(os.getpid(), signal.Signals[sys.argv[2]])
            time.sleep(60)
        case "variable-bytes":
            sys.stdout.write(str(sum(len(value) for name, value in os.environ.items() if name.startswith(sys.argv[2]))))
        case "echo":
            sys.stdout.write(sys.stdin.read())
        case "write":
            os.write(int(sys.argv[2]), b"through a descriptor\n")
        case "append":
            append(Path(sys.argv[2]))
        case "wait":
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
            sys.stdout.write(f"{os.getpid()}\n")
            sys.stdout.flush()
            time.sleep(600)
    return 0


def append(path):
    is_fork = b"zotd.template.server" in Path("/proc/self/cmdline").read_bytes()
    with path.open("a") as file:
        file.write("warm\n" if is_fork else "cold\n")


def describe():
    streams = {"stdin": sys.stdin, "stdout": sys.stdout, "stderr": sys.stderr}
    return {
        "argv": sys.argv[1:],
        "cwd": str(Path.cwd()),
        "environment": {name: os.environ.get(name) for name in ("NAME", "EMPTY", "LATIN", "TZ")},
        "streams": {name: None if one is None else one.encoding for name, one in streams.items()},
        "umask": os.umask(0o22),
        "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "handlers": {name: str(signal.getsignal(number)) for name, number in SIGNALS.items()},
        "zone": time.tzname[0],
    }


SIGNALS = {
    name: getattr(signal, name) for name in ("SIGCHLD", "SIGHUP", "SIGINT", "SIGPIPE", "SIGTERM", "SIGTSTP", "SIGWINCH")
}


if __name__ == "__main__":
    sys.exit(main())
