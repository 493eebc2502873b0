"""Errors of an agent. The message of each is one sentence for people.

AgentError
├── OptionError            a keyword argument of `Agent` is unknown or wrong; also a `ValueError`
├── AgentBusyError         the agent is answering another prompt
└── RunError               a run failed; `result` has what there is
    ├── OutputError           its replies do not match the output type
    └── RunStoppedError       it was aborted

Mistakes in a tool, such as a parameter without a name, are `TypeError` where the tool is made.
"""

from zot.results import RunResult


class AgentError(Exception):
    """Base class of all errors of this package."""


class OptionError(AgentError, ValueError):
    """A keyword argument is unknown, or has a value that cannot be used."""


class AgentBusyError(AgentError):
    """The agent is answering another prompt; wait for it, or use another agent."""


class RunError(AgentError):
    """A run ended without an answer: the model failed, or a limit was reached."""

    def __init__(self, sentence: str, result: RunResult[str]) -> None:
        """`result` is what the run did until then."""
        super().__init__(sentence)
        self.result = result


class RunStoppedError(RunError):
    """The run was aborted."""


class OutputError(RunError):
    """No reply matched the output type, after all tries."""

    @property
    def text(self) -> str:
        """The last reply."""
        return self.result.text
