"""What a task is, and how its parts are written."""

from collections.abc import Mapping, Sequence
from textwrap import dedent

from msgspec import Struct


class Task(Struct, frozen=True):
    """A piece of work in a directory of its own, and how to tell whether it is done."""

    name: str
    prompt: str
    """What the agent is asked for."""
    files: Mapping[str, str]
    """What is in the directory before, by relative path."""
    check: str
    """A program in Python that runs in the directory afterwards; it exits with 0 if the task is done. The agent never sees it."""
    solution: Sequence[tuple[str, Mapping[str, object]]]
    """Tool calls that do the task, one for each step: what the scripted model makes."""
    prepare: str = ""
    """A shell command that runs in the directory before."""


def block(content: str) -> str:
    """Return an indented block as the content of a file."""
    return dedent(content).lstrip("\n")


def bash(command: str) -> tuple[str, dict[str, object]]:
    """Return a call of `bash`."""
    return "bash", {"command": command}


def write(path: str, content: str) -> tuple[str, dict[str, object]]:
    """Return a call of `write`."""
    return "write", {"path": path, "content": block(content)}


def edit(path: str, old: str, new: str) -> tuple[str, dict[str, object]]:
    """Return a call of `edit`."""
    return "edit", {"path": path, "edits": [{"oldText": old, "newText": new}]}
