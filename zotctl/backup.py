"""`zotctl backup`, `verify` and `restore`: the command lines. The work is in `zotctl.database`, which is slow to load."""

import argparse
from importlib import import_module

from zotctl.commands import Commands

BACKUP = """\
examples:
  zotctl backup ~/backups/zot.db
  zotctl backup --force /mnt/usb/zot.db && zotctl verify /mnt/usb/zot.db

Runs beside the daemon, which goes on. The file holds all sessions as they are at that moment, and is for your eyes only
(0600). The configuration, extensions and keys are files of their own in the home: copy what you need of them.
"""

VERIFY = """\
examples:
  zotctl verify
  zotctl verify ~/backups/zot.db

Reads everything and changes nothing, also while the daemon runs: every page, every record, whether their numbers are
complete, and the search index. The exit code is 1 when something is wrong.
"""

RESTORE = """\
example: zotctl stop && zotctl restore ~/backups/zot.db

The daemon must not run. The sessions that were there are kept in a file beside, which is named. A copy with something
wrong in it is refused unless --force says otherwise.
"""


def add(commands: Commands) -> None:
    """`backup`, `verify` and `restore`."""
    backup = commands.add_parser("backup", help="copy all sessions into a file", epilog=BACKUP)
    backup.add_argument("file", metavar="FILE")
    backup.add_argument("--force", action="store_true", help="replace FILE when it exists")
    verify = commands.add_parser("verify", help="look for damage in the sessions, or in a copy", epilog=VERIFY)
    verify.add_argument("file", nargs="?", metavar="FILE", help="a copy (the sessions of this home)")
    restore = commands.add_parser("restore", help="put a copy in the place of all sessions", epilog=RESTORE)
    restore.add_argument("file", metavar="FILE")
    restore.add_argument("--force", action="store_true", help="also a damaged one")
    for parser, action in ((backup, "backup"), (verify, "verify"), (restore, "restore")):
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.add_argument("--json", action="store_true")
        parser.set_defaults(run=_run, action=action)


def _run(args: argparse.Namespace) -> int:
    work = import_module("zotctl.database")
    return int(getattr(work, args.action)(args))
