"""Which calls run in a server, and which of them its requests and reports belong to."""

from collections.abc import Mapping

from mcp.client.session import ClientRequestContext
from mcp.types import ProgressToken

RELATED_TASK = "io.modelcontextprotocol/related-task"
"""What names the task of a message in its `_meta`."""

_TOKEN = "call-"  # noqa: S105  (no secret)


class RunningCalls:
    """The calls of tools that run in one server."""

    def __init__(self) -> None:
        self._sessions: dict[str, str] = {}
        """Of each call, oldest first."""
        self._tasks: dict[str, str] = {}
        """The call of each task of the server."""

    def begin(self, call: str, session: str) -> None:
        """A call begins."""
        self._sessions[call] = session

    def become_task(self, call: str, task: str) -> None:
        """The server runs this call as this task."""
        self._tasks[task] = call

    def end(self, call: str) -> None:
        """A call has ended; harmless if it has not begun."""
        self._sessions.pop(call, None)
        self._tasks = {task: of for task, of in self._tasks.items() if of != call}

    def asking(self, context: ClientRequestContext) -> str | None:
        """Return the call during which the server asks something; None: that is unknown.

        MCP names it only for tasks. Otherwise it is the newest call, as long as all are of one session: a question must not
        appear in a session that it does not concern.
        """
        related = (context.meta or {}).get(RELATED_TASK)
        if isinstance(related, Mapping):
            return self._tasks.get(str(related.get("taskId")))
        if len(set(self._sessions.values())) != 1:
            return None
        return list(self._sessions)[-1]

    def reporting(self, token: ProgressToken) -> str | None:
        """Return the call whose progress has this token, if it was made by `token_of`."""
        call = str(token).removeprefix(_TOKEN)
        return call if token == token_of(call) and call in self._sessions else None


def token_of(call: str) -> str:
    """Return a token for the progress of a call that goes on when its request was answered."""
    return f"{_TOKEN}{call}"
