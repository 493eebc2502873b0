"""`zotctl worktree`: git worktrees for sessions that should not change the same files."""

import argparse

from zotctl.commands import Subparsers

SUMMARY = "create, list, compare, merge and remove git worktrees for sessions"


def add(commands: Subparsers) -> None:
    """Register `worktree` and its actions."""
    parser = commands.add_parser("worktree", help=SUMMARY, epilog="example: zotctl worktree add parser")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    create = actions.add_parser(
        "add", help="create a worktree on a new branch zot/NAME, prepare it and print its directory"
    )
    create.add_argument("name", metavar="NAME", help="name of the worktree")
    create.add_argument("--base", metavar="REF", default="HEAD", help="where the branch starts (default: HEAD)")
    create.set_defaults(run=_add)
    show = actions.add_parser("list", help="list the worktrees of this repository")
    show.set_defaults(run=_list)
    diff = actions.add_parser("diff", help="print all changes since the base, also uncommitted and untracked ones")
    merge = actions.add_parser("merge", help="merge its commits into the branch of the main worktree")
    rebase = actions.add_parser("rebase", help="move its commits onto the commit of the main worktree")
    patch = actions.add_parser(
        "patch", help="apply all its changes, also uncommitted ones, to the files of the main worktree"
    )
    remove = actions.add_parser("remove", help="remove a worktree and its branch")
    remove.add_argument("--force", action="store_true", help="discard unmerged commits and uncommitted changes")
    for action, run in ((diff, _diff), (merge, _merge), (rebase, _rebase), (patch, _patch), (remove, _remove)):
        action.add_argument("name", metavar="WORKTREE", help="name of the worktree")
        action.set_defaults(run=run)
    prune = actions.add_parser("prune", help="remove the worktrees that are merged, clean and not in use")
    prune.add_argument("--dry-run", action="store_true", help="only say what would be removed")
    prune.set_defaults(run=_prune)
    for action in (show, prune):
        action.add_argument("--json", action="store_true", help="print the result as JSON")


def _add(args: argparse.Namespace) -> int:
    from zotctl.worktree import actions  # noqa: PLC0415  (with subprocess some ms, only for this command)

    return actions.create(args.name, args.base)


def _list(args: argparse.Namespace) -> int:
    from zotctl.worktree import actions  # noqa: PLC0415  (as above)

    return actions.show(as_json=args.json)


def _diff(args: argparse.Namespace) -> int:
    from zotctl.worktree import actions  # noqa: PLC0415  (as above)

    return actions.diff(args.name)


def _merge(args: argparse.Namespace) -> int:
    from zotctl.worktree import actions  # noqa: PLC0415  (as above)

    return actions.merge(args.name)


def _rebase(args: argparse.Namespace) -> int:
    from zotctl.worktree import actions  # noqa: PLC0415  (as above)

    return actions.rebase(args.name)


def _patch(args: argparse.Namespace) -> int:
    from zotctl.worktree import actions  # noqa: PLC0415  (as above)

    return actions.patch(args.name)


def _remove(args: argparse.Namespace) -> int:
    from zotctl.worktree import actions  # noqa: PLC0415  (as above)

    return actions.remove(args.name, force=args.force)


def _prune(args: argparse.Namespace) -> int:
    from zotctl.worktree import actions  # noqa: PLC0415  (as above)

    return actions.prune(only_shown=args.dry_run, as_json=args.json)
