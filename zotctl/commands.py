"""What a noun of `zotctl` adds its commands to."""

import argparse
from typing import Protocol


class Commands(Protocol):
    """The subparsers; argparse has no public name for them."""

    def add_parser(self, name: str, *, help: str, epilog: str) -> argparse.ArgumentParser:  # noqa: A002  (argparse's)
        """A parser for one command. Its default `run` takes the arguments and returns the exit code."""
        ...
