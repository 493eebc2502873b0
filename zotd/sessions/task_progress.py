"""What the clients of a session see of a subagent that works for it: a line for each step."""

from collections.abc import Callable, Sequence

from zotd.core import records
from zotd.ledger.ledger import Shown
from zotd.sanitize import one_line
from zotd.sessions.session import Session
from zotd.wire.content import ToolCall

MOST = 500
"""Lines of one call; a subagent with more steps goes on without them."""


class TaskProgress:
    """The progress of one call of `task`."""

    def __init__(self, child: Session, tell: Callable[[str], None]) -> None:
        """`tell` shows a text behind the ones before."""
        self._child = child
        self._tell = tell
        self._steps = 0
        self._lines = 0

    def begun(self) -> None:
        """The subagent works now."""
        self._say(f"{self._child.id} works")

    def committed(self, items: Sequence[Shown]) -> None:
        """Say what the records tell about the subagent."""
        for item in items:
            match item.record:
                case records.Reply(content=content):
                    self._steps += 1
                    names = ", ".join(block.name for block in content if isinstance(block, ToolCall))
                    self._say(f"step {self._steps}: {names or 'answer'}{self._cost()}")
                case records.ApprovalRow(tool=tool):
                    self._say(f"waits for a person's decision about {tool}")
                case _:
                    pass

    def _cost(self) -> str:
        row = self._child.ledger.row
        usd = row.spent.cost_usd + row.spent_below.cost_usd
        return f", ${usd:.4f}" if usd else ""

    def _say(self, text: str) -> None:
        self._lines += 1
        if self._lines <= MOST:
            self._tell(one_line(f"{self._child.ledger.row.name or self._child.id}: {text}") + "\n")
