"""`zotctl sandbox`: shows the jail of a directory, and runs a command in it, without a daemon."""

import argparse

from zotctl.commands import Subparsers

MECHANISMS = ("bubblewrap", "landlock", "seatbelt")
"""`zotd.jail.Mechanism`, which takes 10 ms to import."""

NETWORKS = ("proxied", "open", "off")
"""`zotd.jail.Network`."""


def add(commands: Subparsers) -> None:
    """Register `sandbox` and its actions."""
    parser = commands.add_parser(
        "sandbox",
        help="show what a jail keeps in this directory, run a command in it, or print what commands connected to",
        epilog="example: zotctl sandbox try --allow example.org -- make test",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    show = actions.add_parser("show", help="list what commands may change, read and connect to here")
    show.add_argument("--json", action="store_true", help="print the result as JSON")
    show.set_defaults(run=_show)
    attempt = actions.add_parser("try", help="run a command in the jail of this directory; its exit code is returned")
    attempt.add_argument("command", nargs="+", metavar="CMD", help="the command and its arguments, after --")
    attempt.set_defaults(run=_try)
    for action in (show, attempt):
        action.add_argument(
            "--network",
            choices=NETWORKS,
            default=NETWORKS[0],
            help="what may be reached: allowed hosts through the proxy (the default), everything, or nothing",
        )
        action.add_argument(
            "--allow",
            metavar="HOST",
            action="append",
            default=[],
            help="a host that may be reached besides those of the configuration: example.org, *.example.org, "
            "localhost:8000; can be repeated",
        )
        action.add_argument(
            "--mechanism",
            choices=MECHANISMS,
            help="use this mechanism (default: bubblewrap if it works here, else landlock)",
        )
    log = actions.add_parser("log", help="print the hosts that commands have connected to, or were refused")
    log.add_argument("--refused", action="store_true", help="only requests that were refused")
    log.add_argument("--session", metavar="SESSION", help="only requests of this session, or of zotctl")
    log.add_argument("--json", action="store_true", help="print each request as a line of JSON")
    log.set_defaults(run=_log)


def _show(args: argparse.Namespace) -> int:
    from zotctl.sandbox import actions  # noqa: PLC0415  (with zotd.jail and asyncio 80 ms, only for this command)

    return actions.show(actions.chosen(args.network, args.allow, args.mechanism), as_json=args.json)


def _try(args: argparse.Namespace) -> int:
    from zotctl.sandbox import actions  # noqa: PLC0415  (as above)

    return actions.attempt(actions.chosen(args.network, args.allow, args.mechanism), args.command)


def _log(args: argparse.Namespace) -> int:
    from zotctl.sandbox import traffic  # noqa: PLC0415  (as above)

    return traffic.show(who=args.session, only_refused=args.refused, as_json=args.json)
