"""`zotctl fleet`: daemons that share a database (`docs/postgresql.md`)."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

from zotctl import fleet_batches, fleet_ready, fleet_results, fleet_run, fleet_top, link, output
from zotctl.commands import Subparsers
from zotctl.fleet_waiting import ALONE, why
from zotd import fleet_key, paths, private_file
from zotd.client.blocking import Json
from zotd.client.errors import ClientError
from zotd.client.fields import children, number, strings, text
from zotd.sanitize import one_line

EPILOG = """\
examples:
  zotctl fleet status
  zotctl fleet top
  zotctl fleet key
  zotctl fleet ready
  zotctl fleet run prompts.jsonl > results.jsonl
  zotctl fleet batches
  zotctl fleet results prompts-0123456789ab
  zotctl fleet cancel prompts-0123456789ab

Daemons with the same key forward clients to each other, so that any of them serves all sessions of the database.
"""


def add(commands: Subparsers) -> None:
    """Register `fleet` and its actions."""
    parser = commands.add_parser(
        "fleet", help="show the daemons that share a database, and have them run prompts", epilog=EPILOG
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    status = actions.add_parser(
        "status",
        help="list the daemons, their sessions, and why prompts of batches wait",
        epilog="example: zotctl fleet status --json",
    )
    status.set_defaults(run=_status)
    key = actions.add_parser(
        "key",
        help="make the key that all daemons of a database need",
        epilog="example: zotctl fleet key && scp -p ~/.zot/fleet-key box2:.zot/",
    )
    key.set_defaults(run=_key)
    ready = actions.add_parser(
        "ready",
        help="exit with 0 if this daemon takes work, for readiness probes; it is not started",
        epilog="example: zotctl fleet ready || systemctl status zotd",
    )
    ready.set_defaults(run=fleet_ready.run)
    fleet_run.add(actions)
    fleet_results.add(actions)
    fleet_top.add(actions)
    for action in (status, key, ready, *fleet_batches.add(actions)):
        action.add_argument("--json", action="store_true", help="print the result as JSON")


def _status(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection:
        answer = connection.call("fleet.list")
    found, waiting = children(answer, "daemons"), children(answer, "waiting")
    if args.json:
        output.print_json({"v": 1, "daemons": found, "waiting": waiting})
        return 0
    if found:
        _print_daemons(found)
    else:
        print(ALONE)
    for one in waiting:
        print(one_line(why(one)))
    return 0


def _print_daemons(found: Sequence[Json]) -> None:
    rows = [
        [
            text(one, "name") + (" (this one)" if one.get("is_this") is True else ""),
            text(one, "state"),
            str(number(one, "sessions")),
            str(number(one, "running")),
            text(one, "address") or "none",
            ", ".join(strings(one, "labels")),
        ]
        for one in found
    ]
    output.print_table(["DAEMON", "STATE", "SESSIONS", "RUNNING", "ADDRESS", "LABELS"], rows)


def _key(args: argparse.Namespace) -> int:
    path = Path(paths.zot_home(os.environ), fleet_key.FILE)
    is_new = not path.exists()
    try:
        if is_new:
            paths.make_private_dir(str(path.parent))
            private_file.write(path, fleet_key.made().encode() + b"\n")
        else:
            fleet_key.FleetKey.read(str(path))
    except OSError as error:
        raise ClientError(f"{path} cannot be written: {error.strerror}") from error
    except fleet_key.FleetKeyError as error:
        raise ClientError(str(error)) from error
    if args.json:
        output.print_json({"v": 1, "path": str(path), "made": is_new})
        return 0
    print(one_line(f"{'made' if is_new else 'there is already'} the key {path}"))
    print("copy it to the homes of all daemons of the database, and restart them")
    return 0
