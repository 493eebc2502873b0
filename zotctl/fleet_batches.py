"""`zotctl fleet batches` and `cancel`: the batches of prompts that daemons work through (`docs/batches.md`)."""

import argparse

from zotctl import link, output
from zotd.client.fields import children, number, text
from zotd.client.humanize import counted
from zotd.sanitize import one_line


def add(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> list[argparse.ArgumentParser]:
    """Register the actions; return their parsers."""
    batches = actions.add_parser(
        "batches", help="list batches of prompts", epilog="example: zotctl fleet batches --json"
    )
    batches.set_defaults(run=_list)
    cancel = actions.add_parser(
        "cancel",
        help="run no more prompts of a batch, and abort those that run",
        epilog="example: zotctl fleet cancel prompts-0123456789ab",
    )
    cancel.add_argument("batch", metavar="BATCH", help="its ID, as `zotctl fleet batches` lists it")
    cancel.set_defaults(run=_cancel)
    return [batches, cancel]


def _list(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection:
        answer = connection.call("batch.list")
    found = children(answer, "batches")
    if args.json:
        output.print_json({"v": 1, "batches": found})
        return 0
    if not found:
        print("no batches; `zotctl fleet run FILE` submits one")
        return 0
    rows = [
        [
            text(one, "id") + (" (cancelled)" if one.get("cancelled") is True else ""),
            text(one, "submitter"),
            text(one, "priority"),
            output.moment(text(one, "made")),
            *(text(one, name) for name in ("waiting", "running", "ended")),
        ]
        for one in found
    ]
    output.print_table(["BATCH", "SUBMITTER", "PRIORITY", "MADE", "WAITING", "RUNNING", "ENDED"], rows)
    if answer.get("more") is True:
        print(f"older ones are left out; these are the newest {len(found):,d}")
    return 0


def _cancel(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection:
        found = connection.call("batch.cancel", batch=args.batch)
    if args.json:
        output.print_json({"v": 1, "waiting": number(found, "waiting")})
        return 0
    print(
        one_line(f"cancelled {args.batch}: {counted(number(found, 'waiting'), 'prompt')} not run; what runs is aborted")
    )
    return 0
