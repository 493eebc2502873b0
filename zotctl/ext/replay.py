"""`zotctl ext replay` and `test`: the command line. `zotctl.ext.replaying` does the work; it loads slowly."""

import argparse
from importlib import import_module

from zotctl.commands import Subparsers

REPLAY = """\
examples:
  zotctl ext replay weather/recordings/berlin.jsonl
  zotctl ext replay berlin.jsonl --extension weather --ignore '\\d+ ms'

Starts the extension without a daemon and sends it the recorded frames of the daemon. Its tools do real work. Exit code 1 if it
answers anything else than recorded.
"""

TEST = """\
examples:
  zotctl ext test weather
  zotctl ext test .zot/extensions          the Python modules in .zot/extensions/tools

Replays each DIR/recordings/*.jsonl. Exit code 1 if one differs, or there is none.
"""


def add(actions: Subparsers) -> None:
    """Register `replay` and `test`."""
    parser = actions.add_parser(
        "replay", help="send recorded frames to an extension, and compare its answers", epilog=REPLAY
    )
    parser.add_argument("file", metavar="FILE", help="what `zotctl ext record` has written")
    parser.add_argument("--extension", metavar="DIR", help="the extension (default: the one whose directory has FILE)")
    _add_flags(parser, "replay")
    parser = actions.add_parser("test", help="replay all recordings of an extension", epilog=TEST)
    parser.add_argument("path", nargs="?", default=".", metavar="DIR", help="directory of the extension (default: .)")
    _add_flags(parser, "test")


def _add_flags(parser: argparse.ArgumentParser, work: str) -> None:
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--cwd", default=".", metavar="DIR", help="working directory of its sessions (default: .)")
    parser.add_argument("--ignore", action="append", default=[], metavar="REGEX", help="parts of texts not to compare")
    parser.add_argument(
        "--timeout", type=float, metavar="S", help="longest wait for its next frame, in seconds (default: 10)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_run, work=work)


def _run(args: argparse.Namespace) -> int:
    return int(getattr(import_module("zotctl.ext.replaying"), args.work)(args))
