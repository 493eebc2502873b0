"""`zotctl fleet ready`: whether the daemon of this home takes work, as readiness probes ask it."""

import argparse

from zotctl import link, output
from zotd.client.errors import ClientError

ANSWER_S = 5.0
"""Longest wait for the answer, in seconds. A daemon that cannot reach its database answers late, or not at all."""


def run(args: argparse.Namespace) -> int:
    """Return 0 if the daemon takes work; raises `ClientError` with the reason if not. Starts no daemon."""
    with link.connect("zotctl", start=False) as connection:
        found = connection.call("fleet.ready", timeout_s=ANSWER_S)
    if found.get("stopping") is True:
        raise ClientError("this daemon is stopping, and takes no new work")
    if found.get("ready") is not True:
        raise ClientError(
            "this daemon has no lease on the database, so other daemons may have its sessions; see its log"
        )
    if args.json:
        output.print_json({"v": 1, "ready": True})
    else:
        print("ready")
    return 0
