"""`zotctl status`: the daemon in figures, also when it does not run or hangs."""

import json
import sys
from collections.abc import Sequence

from zotctl import thin
from zotd.client.blocking import Connection, Json
from zotd.client.errors import ClientError, ConnectionLostError, NoAnswerError, NotRunningError

USAGE = """\
usage: zotctl status [--json] [--autostart]

Exit code 0 when the daemon runs and answers; else 1, and the state says why:
stopped (nobody listens), wedged (it listens and does not answer), unreachable (somebody else's, or no access).
--autostart starts it when none runs.

example: zotctl status --json | jq .sessions"""

CONNECT_S = 0.5
ANSWER_S = 2.0
"""Both together, and this program's own start, are less than 3 s."""

FIELDS = (
    "pid",
    "version",
    "protocol",
    "epoch",
    "uptime_s",
    "sessions",
    "running",
    "clients",
    "extensions",
)
"""What a daemon that answers says; null in the JSON of one that does not."""


def main(argv: Sequence[str]) -> int:
    """Run with the arguments after `status`."""
    flags = thin.flags(argv, USAGE, frozenset({"--json", "--autostart"}))
    path = thin.socket_path()
    status: Json = {"v": 1, "state": "stopped", "socket": path, **dict.fromkeys(FIELDS), "warnings": []}
    try:
        with thin.connect(path, CONNECT_S, autostart="--autostart" in flags) as connection:
            status.update(_ask(connection))
    except ClientError as error:
        status.update(state=_state(error), error=str(error))
    if "--json" in flags:
        print(json.dumps(status, ensure_ascii=False, separators=(",", ":")))
    else:
        _print(status)
    return 0 if "error" not in status else 1


def _ask(connection: Connection) -> Json:
    try:
        return connection.call("daemon.status", timeout_s=ANSWER_S)
    except NoAnswerError as error:
        return {"state": "wedged", "pid": connection.server_pid, "error": str(error)}


def _state(error: ClientError) -> str:
    if isinstance(error, NotRunningError | ConnectionLostError):
        return "stopped"
    return "wedged" if isinstance(error, NoAnswerError) else "unreachable"


def _print(status: Json) -> None:
    print(f"state       {status['state']}")
    print(f"socket      {status['socket']}")
    for name in FIELDS:
        if status[name] is not None:
            print(f"{name:11} {status[name]}")
    warnings = status["warnings"]
    for warning in warnings if isinstance(warnings, list) else []:
        print(f"warning     {warning}")
    if "error" in status:
        sys.stderr.write(f"zotctl: {status['error']}\n")
