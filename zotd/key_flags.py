"""The flags `--api-key` and `--api-key-file` of `zot` and `zot rpc`; both set `api_key`."""

import argparse
import sys
from collections.abc import Sequence

from zotd import secret_file

STDIN = "-"

SHOWN = "zot: other users can see the API key in the process list (ps); use --api-key-file FILE to hide it\n"


def add_key_flags(group: argparse._ActionsContainer, *, has_stdin: bool) -> None:
    """Add both flags. With `has_stdin`, `--api-key-file -` reads standard input to its end."""
    either = group.add_mutually_exclusive_group()
    either.add_argument(
        "--api-key", action=_Shown, metavar="KEY", help="API key, kept in memory only; visible to other users in ps"
    )
    either.add_argument(
        "--api-key-file",
        dest="api_key",
        metavar="FILE",
        type=_from_file_or_stdin if has_stdin else _from_file,
        help="file with the API key, of mode 0600" + ("; - for standard input" if has_stdin else ""),
    )


class _Shown(argparse.Action):
    """Stores the value; on a terminal, warns that other users can see it."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        """Store the value of the flag."""
        del parser, option_string
        setattr(namespace, self.dest, values)
        if values and sys.stderr is not None and sys.stderr.isatty():
            sys.stderr.write(SHOWN)


def _from_file_or_stdin(path: str) -> str:
    if path != STDIN:
        return _from_file(path)
    if sys.stdin is None or sys.stdin.isatty():
        raise argparse.ArgumentTypeError("standard input is a terminal; pipe the key into it or name a file")
    try:
        return secret_file.word(sys.stdin.buffer.read(secret_file.MAX_BYTES + 2), "standard input", "key")
    except secret_file.SecretFileError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _from_file(path: str) -> str:
    if path == STDIN:
        raise argparse.ArgumentTypeError("standard input is used by the protocol; name a file")
    try:
        return secret_file.read(path, "key")
    except secret_file.SecretFileError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
