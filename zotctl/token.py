"""`zotctl token`: manages access tokens for remote clients (`docs/protocol.md`)."""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client.choosing import find
from zotd.client.errors import ClientError
from zotd.client.fields import children, strings, text
from zotd.sanitize import one_line

EPILOG = """\
examples:
  zotctl token create phone --role approve --expires 30d
  zotctl token create board --out ~/board.token
  zotctl token create review --role submit --session tests
  zotctl token create alice-laptop --role approve --user alice
  zotctl token list
  zotctl token revoke phone

A token is printed once; the daemon stores only its digest. Revoking a token closes the connections that use it.
"""

ROLES = ("read", "submit", "approve", "admin")

SECONDS = {"m": 60, "h": 3600, "d": 24 * 3600, "w": 7 * 24 * 3600}
"""Units of --expires, in seconds."""

MAX_DIGITS = 9
"""Most digits of the number in --expires; the daemon checks the lifetime itself."""


def add(commands: Subparsers) -> None:
    """Register `token` and its actions."""
    parser = commands.add_parser("token", help="manage the tokens of remote clients", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    create = actions.add_parser(
        "create", help="create a token", epilog="example: zotctl token create phone --role approve"
    )
    create.add_argument("name", metavar="NAME", help="name of the token")
    create.add_argument("--role", choices=ROLES, default="read", help="highest role that it grants (default: read)")
    create.add_argument(
        "-s",
        "--session",
        action="append",
        default=[],
        metavar="ID|NAME",
        help="restrict it to this session; may be repeated",
    )
    create.add_argument(
        "--expires", type=_lifetime, metavar="TIME", help="lifetime: 30m, 12h, 30d, 2w (default: unlimited)"
    )
    create.add_argument(
        "--user",
        metavar="USER",
        help="the user that sessions begun with this token belong to, for lists and quotas (default: none)",
    )
    create.add_argument("--out", metavar="FILE", help="write it to FILE with mode 0600, for --token-file")
    create.set_defaults(run=_create)
    listing = actions.add_parser("list", help="list the tokens", epilog="example: zotctl token list --json")
    listing.set_defaults(run=_list)
    revoke = actions.add_parser("revoke", help="revoke a token", epilog="example: zotctl token revoke phone")
    revoke.add_argument("name", metavar="NAME", help="name of the token")
    revoke.set_defaults(run=_revoke)
    for action in (create, listing, revoke):
        action.add_argument("--json", action="store_true", help="print the result as JSON")


def _create(args: argparse.Namespace) -> int:
    with link.connect("zotctl", role="admin") as connection, _place(args.out) as file:
        sessions = [text(find(connection, name), "id") for name in args.session]
        wanted: dict[str, object] = {"name": args.name, "role": args.role, "sessions": sessions, "user": args.user}
        made = connection.call("token.create", wanted, expires_s=args.expires)
        if file is not None:
            file.write(f"{made.pop('token')}\n".encode())
    if args.json:
        output.print_json({"v": 1, **made})
    elif file is not None:
        print(one_line(f'wrote the token "{args.name}" to {args.out}'))
    else:
        print(one_line(text(made, "token")))  # nothing else, so that it can be piped
        sys.stderr.write("the token is not shown again\n")
    return 0


def _list(args: argparse.Namespace) -> int:
    with link.connect("zotctl", role="admin") as connection:
        found = children(connection.call("token.list"), "tokens")
    if args.json:
        output.print_json({"v": 1, "tokens": found})
        return 0
    rows = [
        [
            text(one, "name"),
            text(one, "role"),
            output.moment(text(one, "expires")) or "never",
            output.moment(text(one, "used")) or "never",
            ", ".join(strings(one, "sessions")) or "all",
            text(one, "user"),
        ]
        for one in found
    ]
    output.print_table(
        *output.without_empty(["NAME", "ROLE", "EXPIRES", "LAST USED", "SESSIONS", "USER"], rows, "USER")
    )
    return 0


def _revoke(args: argparse.Namespace) -> int:
    with link.connect("zotctl", role="admin") as connection:
        connection.call("token.revoke", name=args.name)
    if args.json:
        output.print_json({"v": 1, "name": args.name})
    else:
        print(one_line(f'revoked the token "{args.name}" and closed its connections'))
    return 0


@contextmanager
def _place(path: str | None) -> Iterator[BinaryIO | None]:
    """Create a file with mode 0600 before the token is created; remove it if that fails."""
    if path is None:
        yield None
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise ClientError(f"cannot create {path}: {error.strerror}; no token was created") from error
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise


def _lifetime(word: str) -> float:
    """Convert a lifetime such as `30d` to seconds."""
    count, unit = word[:-1], SECONDS.get(word[-1:])
    if unit is None or not (count.isascii() and count.isdecimal() and len(count) <= MAX_DIGITS):
        raise argparse.ArgumentTypeError(f'invalid lifetime "{word}"; use a form such as 30m, 12h, 30d or 2w')
    return float(int(count) * unit)
