"""`zotctl status`: prints the daemon's state and figures, even if it hangs or is not running."""

import json
import os
import sys
from collections.abc import Sequence

from zotctl import fast_cli, status_probe
from zotd.client.blocking import Json
from zotd.sanitize import one_line

USAGE = """\
usage: zotctl status [--json] [--autostart]

Show the state of the daemon. Answers within 3 s, unless it starts the daemon.
Exit code 0 if the daemon can be used, otherwise 1.

The state is one of:

  running        the daemon runs and answers
  mismatched     its version differs from this program's; exit code 1 if they share no protocol
  unmanaged      a service is installed but did not start it, or its service is no longer installed
  stopping       it is shutting down
  starting       it is starting up
  stopped        it is not running; status does not start it, not even through systemd's socket
  stale          it was killed, and its socket file is left over
  listener_lost  it is running, but its socket is gone or belongs to another process
  wedged         it accepts connections but does not answer
  unreachable    the socket belongs to another user, or access is denied

`next` is the command to run next. --autostart starts the daemon if none runs.

example: zotctl status --json | jq .sessions"""


def main(argv: Sequence[str]) -> int:
    """Run with the arguments after `status` and return the exit code."""
    flags = fast_cli.flags(argv, USAGE, frozenset({"--json", "--autostart"}))
    path, starts = fast_cli.socket_path(), "--autostart" in flags
    status = status_probe.probe(
        path, os.environ, lambda: fast_cli.connect(path, status_probe.CONNECT_S, autostart=starts), activates=starts
    )
    if "--json" in flags:
        print(json.dumps(status, separators=(",", ":")))  # ASCII escapes keep control characters off the terminal
    else:
        _print(status)
    return 0 if "error" not in status else 1


def _print(status: Json) -> None:
    print(one_line(f"state       {status['state']}"))
    print(one_line(f"socket      {status['socket']}"))
    for name in status_probe.FIELDS:
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
