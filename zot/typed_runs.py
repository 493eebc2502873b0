"""A run whose result is a value: asks again when a reply does not match its type."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from zot.errors import OutputError, RunError
from zot.output_types import OutputMismatchError, OutputType
from zot.results import RunResult, joined, with_output

T = TypeVar("T")


async def typed_run(
    ask: Callable[[str], Awaitable[RunResult[str]]], prompt: str, expected: OutputType[T], *, tries: int
) -> RunResult[T]:
    """Return the result of a run with a value of this type; its usage and calls are those of all tries.

    `ask` sends a prompt of the conversation and returns the result of its run; `tries` is at least 1.

    Raises:
        OutputError: the last of `tries` replies does not match.
        RunError: `ask` has raised it.
    """
    result = await ask(expected.asked(prompt))
    for left in reversed(range(tries)):
        try:
            return with_output(result, expected.parsed(result.text))
        except OutputMismatchError as error:
            if not left:
                replies = "the reply" if tries == 1 else f"none of {tries} replies"
                verb = "does not match" if tries == 1 else "matches"
                raise OutputError(f"{replies} {verb} the output type: {error}", result) from error
            correction = expected.corrected(error)
        try:
            result = joined(result, await ask(correction))
        except RunError as error:
            raise type(error)(str(error), joined(result, error.result)) from error
    raise AssertionError("the last try returns or raises")
