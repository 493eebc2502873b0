"""`zotctl channel`: messaging channels and the senders paired with them."""

import argparse

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client.blocking import Json
from zotd.client.fields import children, number, text
from zotd.sanitize import one_line


def add(commands: Subparsers) -> None:
    """Register `channel` and its actions."""
    parser = commands.add_parser(
        "channel", help="manage messaging channels and their senders", epilog="example: zotctl channel pair K7QX-M2PD"
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    show = actions.add_parser("list", help="list channels, paired senders and pending pairing codes")
    show.set_defaults(run=_list)
    pair = actions.add_parser("pair", help="pair the sender that received this code")
    pair.add_argument("code", metavar="CODE", help="the code that the sender received")
    pair.add_argument(
        "--approve", action="store_true", help="ask this sender for approvals, and let it approve or deny calls"
    )
    pair.set_defaults(run=_pair)
    unpair = actions.add_parser("unpair", help="revoke a sender's access; keeps its session")
    unpair.add_argument("channel", metavar="CHANNEL", help="name of the channel")
    unpair.add_argument("sender", metavar="SENDER", help="ID of the sender, as in zotctl channel list")
    unpair.set_defaults(run=_unpair)
    for action in (show, pair, unpair):
        action.add_argument("--json", action="store_true", help="print the result as JSON")


def _list(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection:
        found = connection.call("channel.list")
    if args.json:
        output.print_json({"v": 1, **found})
        return 0
    output.print_table(["CHANNEL", "STATE", "ABOUT"], [_channel(one) for one in children(found, "channels")])
    if senders := [_sender(one) for one in children(found, "paired")]:
        print()
        output.print_table(["CHANNEL", "SENDER", "PAIRED", "APPROVES", "UNDELIVERED", "SESSION"], senders)
    for one in children(found, "waiting"):
        stranger = f"{text(one, 'sender')} on {text(one, 'channel')}"
        print(f"\n{one_line(stranger)} received a pairing code; to pair it, run: zotctl channel pair CODE")
    return 0


def _pair(args: argparse.Namespace) -> int:
    with link.connect("zotctl", role="admin") as connection:
        paired = connection.call("channel.pair", code=args.code, may_approve=args.approve)
    if args.json:
        output.print_json({"v": 1, **paired})
    else:
        what = "may now send prompts and approve calls" if args.approve else "may now send prompts"
        print(one_line(f"{text(paired, 'sender')} on {text(paired, 'channel')} {what}"))
    return 0


def _unpair(args: argparse.Namespace) -> int:
    with link.connect("zotctl", role="admin") as connection:
        connection.call("channel.unpair", channel=args.channel, sender=args.sender)
    if args.json:
        output.print_json({"v": 1, "channel": args.channel, "sender": args.sender})
    else:
        print(one_line(f"{args.sender} on {args.channel} is no longer paired"))
    return 0


def _channel(one: Json) -> list[str]:
    return [text(one, "name"), text(one, "state"), text(one, "error") or text(one, "description").partition("\n")[0]]


def _sender(one: Json) -> list[str]:
    since = output.moment(text(one, "since"))
    approves = "yes" if one.get("may_approve") else "no"
    owed = str(number(one, "undelivered"))
    return [text(one, "channel"), text(one, "sender"), since, approves, owed, text(one, "session")]
