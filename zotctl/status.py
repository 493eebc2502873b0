"""`zotctl status`: the daemon in figures, also when it does not run or hangs."""

import json
import os
import sys
from collections.abc import Sequence

from zotctl import standing, thin
from zotd.client.blocking import Json
from zotd.sanitize import one_line

USAGE = """\
usage: zotctl status [--json] [--autostart]

Answers within 3 s. Exit code 0 when the daemon can be used, else 1. The state is one of

  running        it runs and answers
  mismatched     it is of another version than this program; exit code 1 if they share no protocol
  unmanaged      it runs beside the service that is installed, or was left by one that is not any more
  stopping       it is about to end
  starting       it is about to be there
  stopped        it does not run; status does not start it, also where systemd would for a client
  stale          it was killed, and has left its socket
  listener_lost  it lives, and its socket is gone or somebody else's
  wedged         it listens and does not answer
  unreachable    somebody else's, or no access

and `next` is the command to type. --autostart starts it when none runs.

example: zotctl status --json | jq .sessions"""


def main(argv: Sequence[str]) -> int:
    """Run with the arguments after `status`."""
    flags = thin.flags(argv, USAGE, frozenset({"--json", "--autostart"}))
    path, starts = thin.socket_path(), "--autostart" in flags
    status = standing.look(
        path, os.environ, lambda: thin.connect(path, standing.CONNECT_S, autostart=starts), activates=starts
    )
    if "--json" in flags:
        print(json.dumps(status, separators=(",", ":")))  # in ASCII: whatever is in it cannot steer a terminal
    else:
        _print(status)
    return 0 if "error" not in status else 1


def _print(status: Json) -> None:
    print(one_line(f"state       {status['state']}"))
    print(one_line(f"socket      {status['socket']}"))
    for name in standing.FIELDS:
        value = status[name]
        if value is not None:
            print(one_line(f"{name:11} {' to '.join(map(str, value)) if isinstance(value, list) else value}"))
    warnings = status["warnings"]
    for warning in warnings if isinstance(warnings, list) else []:
        print(one_line(f"warning     {warning}"))
    if status["next"] is not None:
        print(one_line(f"next        {status['next']}"))
    if "error" in status:
        sys.stderr.write(one_line(f"zotctl: {status['error']}") + "\n")
