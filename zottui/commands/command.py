"""What a slash command of this client is."""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from zottui.choice import ListChoice
from zottui.editor.completion import Source
from zottui.ui_context import UiContext

Values = Callable[[UiContext], Awaitable[list[tuple[str, str]]]]
"""What an argument may be: (word, what it means)."""


@dataclass(frozen=True, slots=True)
class Command:
    """One row of the table."""

    name: str
    """Without the slash."""
    summary: str
    run: Callable[[UiContext, str], Awaitable[None]]
    """Takes what stands behind the name. A `ClientError` becomes a note."""
    args: str = ""
    """How what follows it is written, for `/help`."""
    values: Values | None = None


class UsageError(Exception):
    """The user typed something that cannot be; the message says what to type."""


def of(desk: UiContext) -> str:
    """The id of the session that is shown.

    Raises:
        UsageError: there is none yet.
    """
    session = desk.state.session
    if session is None:
        raise UsageError("no session yet: still connecting to zotd")
    return session.id


def number(args: str, what: str) -> int | None:
    """The whole number that was typed; None: nothing was.

    Raises:
        UsageError: it is something else.
    """
    if not args:
        return None
    if not args.isdecimal():
        raise UsageError(f"{what} must be a number, not {args}")
    return int(args)


def arguments(desk: UiContext, commands: Iterable[Command]) -> dict[str, Source]:
    """What completes the arguments of those that say what they take, by name."""
    return {each.name: _source(desk, each.values) for each in commands if each.values is not None}


def _source(desk: UiContext, values: Values) -> Source:
    async def choices(_: str) -> list[ListChoice]:
        return [ListChoice(word, meaning) for word, meaning in await values(desk)]

    return choices
