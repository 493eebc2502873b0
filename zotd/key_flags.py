"""`--api-key` and `--api-key-file`, for `zot` and `zot rpc`: both give `api_key`."""

import argparse
import sys
from collections.abc import Sequence

from zotd import secret_file

STDIN = "-"

SHOWN = "zot: other users can see the key of --api-key in the list of processes (ps); --api-key-file FILE hides it\n"


def add_key_flags(group: argparse._ActionsContainer, *, has_stdin: bool) -> None:
    """`has_stdin`: `-` may name standard input, which the program then finds at its end."""
    either = group.add_mutually_exclusive_group()
    either.add_argument("--api-key", action=_Shown, metavar="KEY", help="kept in memory only; ps shows it to others")
    either.add_argument(
        "--api-key-file",
        dest="api_key",
        metavar="FILE",
        type=_from_file_or_stdin if has_stdin else _from_file,
        help="the same from a file of mode 0600" + (", or with - from standard input" if has_stdin else ""),
    )


class _Shown(argparse.Action):
    """Takes the value, and tells a person at a terminal who else can see it."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        """As argparse wants it."""
        del parser, option_string
        setattr(namespace, self.dest, values)
        if values and sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write(SHOWN)


def _from_file_or_stdin(path: str) -> str:
    if path != STDIN:
        return _from_file(path)
    if sys.stdin is None or sys.stdin.isatty():
        raise argparse.ArgumentTypeError(
            "standard input is no pipe and no file that a key could come from; name a file"
        )
    try:
        return secret_file.word(sys.stdin.buffer.read(secret_file.MAX_BYTES + 2), "standard input", "key")
    except secret_file.SecretFileError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _from_file(path: str) -> str:
    if path == STDIN:
        raise argparse.ArgumentTypeError("standard input is for the protocol; name a file")
    try:
        return secret_file.read(path, "key")
    except secret_file.SecretFileError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
