"""Checks registrations: those that the host refuses, and those that are accepted but useless."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from zotd.exthost.contributions import BUILTIN_TOOLS, UNKNOWN_INTERCEPTS, Registrations
from zotd.exthost.validation.questions import EVENTS


def tool_faults(registered: Registrations, refused: Sequence[str], module_errors: Mapping[str, str]) -> Iterator[str]:
    """Yield a sentence for each tool that cannot be offered, and each Python module that does not load.

    `refused` has the host's sentences about all registrations, also in the next functions.
    """
    yield from (sentence for sentence in refused if sentence.startswith("the tool"))
    yield from (f"{Path(file).name}: {error}" for file, error in module_errors.items() if error)
    for name, tool in registered.tools.items():
        if name in BUILTIN_TOOLS:
            yield f'the tool "{name}" is hidden by the built-in one'
        if not tool.description:
            yield f'the tool "{name}" has no description, so no model knows what it is for'


def command_faults(registered: Registrations, refused: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each command that is refused or has no description."""
    yield from (sentence for sentence in refused if sentence.startswith("the command"))
    for name, command in registered.commands.items():
        if not command.description:
            yield f'the command "{name}" has no description, so users cannot know what it is for'


def subscription_faults(registered: Registrations, refused: Sequence[str]) -> Iterator[str]:
    """Yield a sentence for each subscription to an event that does not exist."""
    yield from (sentence for sentence in refused if sentence.startswith(UNKNOWN_INTERCEPTS))
    for event in sorted(registered.events - EVENTS.keys()):
        near = difflib.get_close_matches(event, EVENTS, 1)
        meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(EVENTS)}"
        yield f'there is no event "{event[:80]}"; {meant}'
