"""The flags that select extensions: of a directory (default: the current one), of a session, or all."""

import argparse
import os

from zotd.client import place
from zotd.client.blocking import Connection, Json
from zotd.client.choosing import find
from zotd.client.fields import text


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Add `--cwd`, `--session` and `--all`."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--cwd", default=".", metavar="DIR", help="extensions of this directory (default: the current one)"
    )
    group.add_argument(
        "-s", "--session", metavar="ID|NAME", help="extensions of this session, including those of --ext"
    )
    group.add_argument("--all", action="store_true", help="extensions of all directories and sessions")


def chosen(connection: Connection, args: argparse.Namespace) -> Json:
    """Return the flags as request fields; empty for --all. Raises `ClientError` if the session does not exist."""
    if args.session is not None:
        return {"session": text(find(connection, str(args.session)), "id")}
    return {} if args.all else {"cwd": place.of(os.environ).real_path(str(args.cwd))}
