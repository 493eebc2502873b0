"""The help of all commands and arguments of `zotctl`."""

import argparse

import pytest

from zotctl import parser_tree
from zotctl.main import parser


def commands(parser, path=("zotctl",)):
    """Each command with its parser, also those of commands with actions."""
    yield path, parser
    for action in parser_tree.arguments(parser):
        for name, command in parser_tree.subcommands(action).items():
            yield from commands(command, (*path, name))


ALL = {" ".join(path): parser for path, parser in commands(parser())}


@pytest.mark.parametrize("name", ALL)
def test_every_command_describes_itself_and_its_arguments(name):
    parser = ALL[name]
    assert parser.description
    assert parser.description.endswith(".")
    unexplained = [
        one.option_strings or one.dest
        for one in parser_tree.arguments(parser)
        if not one.help and not parser_tree.subcommands(one)
    ]
    assert unexplained == []


def test_a_hidden_command_has_no_description():
    parser = argparse.ArgumentParser()
    hidden = parser.add_subparsers().add_parser("internal")
    parser_tree.describe(parser)
    assert not hidden.description


def test_the_help_of_a_command_begins_with_what_it_does(shell):
    code, out, err = shell.zotctl("approve", "--help")
    assert (code, err) == (0, "")
    assert "\nApprove a pending tool call.\n" in out
