"""The type of argparse's subparsers."""

import argparse
from typing import Protocol


class Subparsers(Protocol):
    """What `ArgumentParser.add_subparsers` returns; argparse has no public name for it."""

    def add_parser(self, name: str, *, help: str, epilog: str) -> argparse.ArgumentParser:  # noqa: A002  (argparse's)
        """Return a new parser. The caller sets its default `run`: a function from the arguments to the exit code."""
        ...
