"""A client beside the service that ends its daemon over and over: python counting.py ROUNDS

It has the extension of `tests.faults.counter` count once, kills the daemon, has the next one count, ROUNDS times, and at
last lets the service manager restart it. Says as JSON what it was told each time: the daemon's pid, and the extension's
words; and what the last daemon answers to a process that the extension has left behind, and which wants to stop it. What
comes in the way of a daemon that ends is asked again.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from zotd import paths
from zotd.client.blocking import Connection, open_socket
from zotd.client.errors import ConnectionLostError

ANSWER_S = 40.0

UNIT = "zotd.service"


def main(rounds):
    """Everything that was told."""
    session = asked(made)
    found = [asked(counted, session)]
    for _ in range(rounds):
        os.kill(found[-1]["daemon"], signal.SIGKILL)
        found.append(asked(counted, session, other_than=found[-1]["daemon"]))
    subprocess.run(["systemctl", "--user", "restart", UNIT], check=True)
    found.append(asked(counted, session, other_than=found[-1]["daemon"]))
    return {"told": found, "orphan": asked(stopped, session)}


def asked(question, *details, other_than=None):
    """The answer of a daemon, which is not that one."""
    while True:
        try:
            with Connection(open_socket(paths.socket_path(os.environ), ANSWER_S)) as daemon:
                pid = daemon.call("daemon.status", timeout_s=ANSWER_S)["pid"]
                if pid != other_than:
                    return question(daemon, pid, *details)
        except ConnectionLostError:
            continue


def made(daemon, _):
    """The id of a new session."""
    env = {name: os.environ[name] for name in ("PATH", "HOME")}
    options = {"cwd": str(Path.home()), "provider": "ollama", "model": "none", "env": env}
    return daemon.call("session.create", timeout_s=ANSWER_S, **options)["session"]["id"]


def counted(daemon, pid, session):
    """What one daemon said, and its extension."""
    daemon.call("attach", timeout_s=ANSWER_S, session=session)
    said = daemon.call("run_command", timeout_s=ANSWER_S, session=session, name="count")["text"]
    extension, number = map(int, said.split())
    return {"daemon": pid, "extension": extension, "number": number}


def stopped(daemon, _, session):
    """The code of the answer to an orphan of the extension."""
    path = Path.home() / "said"
    os.mkfifo(path)
    args = f"orphan {paths.socket_path(os.environ)} {path}"
    daemon.call("attach", timeout_s=ANSWER_S, session=session)
    daemon.call("run_command", timeout_s=ANSWER_S, session=session, name="count", args=args)
    return json.loads(path.read_bytes()).get("code")


if __name__ == "__main__":
    sys.stdout.write(json.dumps(main(int(sys.argv[1]))))
