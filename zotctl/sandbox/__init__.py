"""`zotctl sandbox`: shows the jail of a directory, and runs a command in it, without a daemon."""

import argparse

from zotctl.commands import Subparsers

MECHANISMS = ("bubblewrap", "landlock")
"""`zotd.jail.Mechanism`, which takes 10 ms to import."""


def add(commands: Subparsers) -> None:
    """Register `sandbox` and its actions."""
    parser = commands.add_parser(
        "sandbox",
        help="show what a jail keeps in this directory, or run a command in it",
        epilog="example: zotctl sandbox try -- make test",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    show = actions.add_parser("show", help="list what commands may change, read and connect to here")
    show.add_argument("--json", action="store_true", help="print the result as JSON")
    show.set_defaults(run=_show)
    attempt = actions.add_parser("try", help="run a command in the jail of this directory; its exit code is returned")
    attempt.add_argument("command", nargs="+", metavar="CMD", help="the command and its arguments, after --")
    attempt.set_defaults(run=_try)
    for action in (show, attempt):
        action.add_argument("--network", action="store_true", help="allow the network (default: no network)")
        action.add_argument(
            "--mechanism",
            choices=MECHANISMS,
            help="use this mechanism (default: bubblewrap if it works here, else landlock)",
        )


def _show(args: argparse.Namespace) -> int:
    from zotctl.sandbox import actions  # noqa: PLC0415  (with zotd.jail 10 ms, only for this command)

    jail = actions.jail_here(args.mechanism, network=args.network)
    return actions.show(jail, as_json=args.json)


def _try(args: argparse.Namespace) -> int:
    from zotctl.sandbox import actions  # noqa: PLC0415  (as above)

    return actions.run(actions.jail_here(args.mechanism, network=args.network), args.command)
