"""Reads the arguments and subcommands of an argparse parser, which has no public way to list them.

The only module that uses those private attributes; other completion libraries rely on them too.
"""

import argparse
from collections.abc import Mapping


def arguments(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """Return the flags and positionals of a parser, in the order in which they were added."""
    return parser._actions  # noqa: SLF001


def subcommands(action: argparse.Action) -> Mapping[str, argparse.ArgumentParser]:
    """Return the parsers of a subcommand argument by name; empty for any other argument."""
    return action.choices if isinstance(action, argparse._SubParsersAction) else {}  # noqa: SLF001


def summaries(action: argparse.Action) -> dict[str, str]:
    """Return the help lines of a subcommand argument by name; hidden subcommands have none."""
    if not isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
        return {}
    return {one.dest: one.help or "" for one in action._choices_actions}  # noqa: SLF001


def describe(parser: argparse.ArgumentParser) -> None:
    """Show the help line of each subcommand in its own --help as well, where argparse omits it."""
    for action in arguments(parser):
        helps = summaries(action)
        for name, command in subcommands(action).items():
            summary = helps.get(name, "")
            command.description = summary and f"{summary[0].upper()}{summary[1:]}."
            describe(command)
