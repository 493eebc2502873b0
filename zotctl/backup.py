"""`zotctl backup`, `verify` and `restore`: the command lines. `zotctl.database` does the work; it loads slowly."""

import argparse
from importlib import import_module

from zotctl.commands import Subparsers

BACKUP = """\
examples:
  zotctl backup ~/backups/zot.db
  zotctl backup --force /mnt/usb/zot.db && zotctl verify /mnt/usb/zot.db

Can run while the daemon runs. FILE holds all sessions as of that moment and has mode 0600. The configuration,
extensions and keys are separate files in $ZOT_HOME; copy the ones you need.
"""

VERIFY = """\
examples:
  zotctl verify
  zotctl verify ~/backups/zot.db

Checks every page, every record, that event numbers have no gaps, and the search index. Changes nothing and can run
while the daemon runs. Exit code 1 if it finds a problem.
"""

RESTORE = """\
example: zotctl stop && zotctl restore ~/backups/zot.db

The daemon must be stopped. The current sessions are kept in a file next to the database; its name is printed. A
damaged backup is refused unless --force is given.
"""


def add(commands: Subparsers) -> None:
    """Register `backup`, `verify` and `restore`."""
    backup = commands.add_parser("backup", help="copy all sessions to a file", epilog=BACKUP)
    backup.add_argument("file", metavar="FILE", help="the file to create")
    backup.add_argument("--force", action="store_true", help="replace FILE if it exists")
    verify = commands.add_parser("verify", help="check the sessions, or a backup, for damage", epilog=VERIFY)
    verify.add_argument("file", nargs="?", metavar="FILE", help="a backup (default: the sessions of this home)")
    restore = commands.add_parser("restore", help="replace all sessions with a backup", epilog=RESTORE)
    restore.add_argument("file", metavar="FILE", help="a file that zotctl backup has written")
    restore.add_argument("--force", action="store_true", help="restore FILE even if it is damaged")
    for parser, action in ((backup, "backup"), (verify, "verify"), (restore, "restore")):
        parser.formatter_class = argparse.RawDescriptionHelpFormatter
        parser.add_argument("--json", action="store_true", help="print the result as JSON")
        parser.set_defaults(run=_run, action=action)


def _run(args: argparse.Namespace) -> int:
    work = import_module("zotctl.database")
    return int(getattr(work, args.action)(args))
