"""The type of a slash command, and helpers to read its arguments."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from zottui.choice import ListChoice
from zottui.editor.completion import Source
from zottui.ui_context import UiContext

Values = Callable[[UiContext], Awaitable[list[tuple[str, str]]]]
"""Returns the possible values of an argument as (value, description), for completion."""


@dataclass(frozen=True, slots=True)
class Command:
    """A slash command that the client handles itself.

    Attributes:
        name: without the slash.
        summary: one line for `/help`.
        run: takes the text after the name. A `ClientError` or `UsageError` that it raises is shown as a note.
        args: how the arguments are written in `/help`; `[X]` is optional.
        values: completes the argument, if set.
    """

    name: str
    summary: str
    run: Callable[[UiContext, str], Awaitable[None]]
    args: str = ""
    values: Values | None = None


class UsageError(Exception):
    """The command's arguments are invalid; the message tells the user what to type instead."""


def of(ui: UiContext) -> str:
    """Return the id of the session on the screen.

    Raises:
        UsageError: the client is not attached to a session yet.
    """
    session = ui.state.session
    if session is None:
        raise UsageError("no session yet: still connecting to zotd")
    return session.id


def number(args: str, what: str) -> int | None:
    """Parse an optional whole number; None if `args` is empty.

    Raises:
        UsageError: `args` is not a number. The message begins with `what`.
    """
    if not args:
        return None
    if not args.isdecimal():
        raise UsageError(f"{what} must be a number, not {args}")
    return int(args)


def arguments(ui: UiContext, commands: Iterable[Command]) -> dict[str, Source]:
    """Return completion sources for the commands that have `values`, by command name."""
    return {each.name: _source(ui, each.values) for each in commands if each.values is not None}


def _source(ui: UiContext, values: Values) -> Source:
    async def choices(_: str) -> list[ListChoice]:
        return [ListChoice(word, meaning) for word, meaning in await values(ui)]

    return choices
