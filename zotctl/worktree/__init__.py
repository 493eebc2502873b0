"""`zotctl worktree`: git worktrees for sessions that should not change the same files."""

import argparse

from zotctl.commands import Subparsers


def add(commands: Subparsers) -> None:
    """Register `worktree` and its actions."""
    parser = commands.add_parser(
        "worktree",
        help="create, list, compare and remove git worktrees for sessions",
        epilog="example: zotctl worktree add parser",
    )
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    create = actions.add_parser("add", help="create a worktree on a new branch zot/NAME, and print its directory")
    create.add_argument("--base", metavar="REF", default="HEAD", help="where the branch starts (default: HEAD)")
    show = actions.add_parser("list", help="list the worktrees of this repository")
    show.add_argument("--json", action="store_true", help="print the result as JSON")
    show.set_defaults(run=_list)
    diff = actions.add_parser("diff", help="print all changes since the base, also uncommitted and untracked ones")
    remove = actions.add_parser("remove", help="remove a worktree and its branch")
    remove.add_argument("--force", action="store_true", help="discard unmerged commits and uncommitted changes")
    for action, run in ((create, _add), (diff, _diff), (remove, _remove)):
        action.add_argument("name", metavar="NAME", help="name of the worktree")
        action.set_defaults(run=run)


def _add(args: argparse.Namespace) -> int:
    from zotctl.worktree import actions  # noqa: PLC0415  (with subprocess some ms, only for this command)

    return actions.create(args.name, args.base)


def _list(args: argparse.Namespace) -> int:
    from zotctl.worktree import actions  # noqa: PLC0415  (as above)

    return actions.show(as_json=args.json)


def _diff(args: argparse.Namespace) -> int:
    from zotctl.worktree import actions  # noqa: PLC0415  (as above)

    return actions.diff(args.name)


def _remove(args: argparse.Namespace) -> int:
    from zotctl.worktree import actions  # noqa: PLC0415  (as above)

    return actions.remove(args.name, force=args.force)
