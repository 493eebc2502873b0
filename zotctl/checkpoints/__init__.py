"""`zotctl checkpoints`: lists, compares, records and restores the recorded states of a directory, without a daemon."""

import argparse

from zotctl.commands import Subparsers

EPILOG = """\
examples:
  zotctl checkpoints record
  zotctl checkpoints list
  zotctl checkpoints diff 41
  zotctl checkpoints diff 41 --run
  zotctl checkpoints restore 41 src/parser.py
  zotctl checkpoints restore 41

Files that you have changed since the last checkpoint are restored only with --force. Every restore can be undone: it
prints the command.
"""


def add(commands: Subparsers) -> None:
    """Register `checkpoints` and its actions."""
    parser = commands.add_parser(
        "checkpoints", help="list, compare and restore earlier states of the files in a directory", epilog=EPILOG
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    listing = actions.add_parser("list", help="list the checkpoints of this directory, newest first")
    show = actions.add_parser("show", help="show what changed up to a checkpoint, and what it does not contain")
    diff = actions.add_parser("diff", help="print the changes since a checkpoint as a patch")
    restore = actions.add_parser("restore", help="return files to the state of a checkpoint")
    record = actions.add_parser("record", help="record the files of this directory now")
    for action, run in ((listing, _list), (show, _show), (diff, _diff), (restore, _restore), (record, _record)):
        action.add_argument("--cwd", metavar="DIR", default=".", help="the directory (default: the current one)")
        action.set_defaults(run=run)
    for action in (listing, show, restore, record):
        action.add_argument("--json", action="store_true", help="print the result as JSON")
    for action in (show, diff, restore):
        action.add_argument("number", type=int, metavar="CHECKPOINT", help="number of the checkpoint")
    for action in (diff, restore):
        action.add_argument("paths", nargs="*", metavar="PATH", help="only these files and directories")
    diff.add_argument("--to", type=int, metavar="CHECKPOINT", help="compare with this checkpoint instead of the files")
    diff.add_argument(
        "--run",
        action="store_true",
        dest="of_run",
        help="compare before and after the run that this checkpoint is part of",
    )
    restore.add_argument("--force", action="store_true", help="restore also files changed since the last checkpoint")


def _list(args: argparse.Namespace) -> int:
    from zotctl.checkpoints import actions  # noqa: PLC0415  (with zotd.checkpoints 20 ms, only for this command)

    return actions.print_list(args.cwd, as_json=args.json)


def _show(args: argparse.Namespace) -> int:
    from zotctl.checkpoints import actions  # noqa: PLC0415  (as above)

    return actions.show(args.cwd, args.number, as_json=args.json)


def _diff(args: argparse.Namespace) -> int:
    from zotctl.checkpoints import actions  # noqa: PLC0415  (as above)

    return actions.diff(args.cwd, args.number, args.to, args.paths, of_run=args.of_run)


def _restore(args: argparse.Namespace) -> int:
    from zotctl.checkpoints import actions  # noqa: PLC0415  (as above)

    return actions.restore(args.cwd, args.number, args.paths, force=args.force, as_json=args.json)


def _record(args: argparse.Namespace) -> int:
    from zotctl.checkpoints import actions  # noqa: PLC0415  (as above)

    return actions.record(args.cwd, as_json=args.json)
