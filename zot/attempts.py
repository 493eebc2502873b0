"""The prompts of one run, until its result has the wanted type."""

from typing import Generic, Protocol, TypeVar

from zot.errors import OutputError
from zot.output_types import OutputMismatchError, OutputType
from zot.results import RunResult, joined, with_output

T = TypeVar("T")


class PromptAttempts(Protocol[T]):
    """Decides after each reply whether the run has its result."""

    @property
    def prompt(self) -> str:
        """What to send next."""
        ...

    def in_all(self, result: RunResult[str]) -> RunResult[str]:
        """Return the result of this attempt with the usage and the calls of those before it."""
        ...

    def take(self, result: RunResult[str]) -> RunResult[T] | None:
        """Process the result of an attempt. None: there is to be another one.

        Raises:
            OutputError: it was the last one.
        """
        ...


class OneAttempt:
    """For text: the first reply is the result."""

    def __init__(self, prompt: str) -> None:
        self.prompt = prompt

    def in_all(self, result: RunResult[str]) -> RunResult[str]:
        """See `PromptAttempts`."""
        return result

    def take(self, result: RunResult[str]) -> RunResult[str]:
        """See `PromptAttempts`."""
        return result


class TypedAttempts(Generic[T]):
    """For a value: a reply that does not match its type is answered with what is wrong."""

    def __init__(self, prompt: str, expected: OutputType[T], tries: int) -> None:
        """`tries`: most replies that are asked for, at least 1."""
        self.prompt = expected.asked(prompt)
        self._expected = expected
        self._tries = tries
        self._made = 0
        self._before: RunResult[str] | None = None

    def in_all(self, result: RunResult[str]) -> RunResult[str]:
        """See `PromptAttempts`."""
        return result if self._before is None else joined(self._before, result)

    def take(self, result: RunResult[str]) -> RunResult[T] | None:
        """See `PromptAttempts`."""
        self._made += 1
        self._before = result = self.in_all(result)
        try:
            return with_output(result, self._expected.parsed(result.text))
        except OutputMismatchError as error:
            if self._made == self._tries:
                replies = "the reply does not match" if self._tries == 1 else f"none of {self._tries} replies matches"
                raise OutputError(f"{replies} the output type: {error}", result) from error
            self.prompt = self._expected.corrected(error)
        return None
