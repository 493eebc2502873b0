"""Has the files of the workspace recorded once for each step, before the first of its calls that may change them."""

import asyncio
from collections.abc import Sequence

from zotd.ledger.ledger import Ledger
from zotd.workspace.session_checkpoints import SessionCheckpoints


class StepRecording:
    """The recordings of one run."""

    def __init__(self, run: str, ledger: Ledger, checkpoints: SessionCheckpoints | None) -> None:
        """`checkpoints`: None: nothing is recorded."""
        self._run = run
        self._ledger = ledger
        self._checkpoints = checkpoints
        self._is_due = False
        self._tools: Sequence[str] = ()
        self._under_way = asyncio.Lock()

    def begin_step(self, tools: Sequence[str]) -> None:
        """A step begins whose calls of these tools may change files."""
        self._is_due = bool(tools)
        self._tools = tools

    async def before_change(self) -> None:
        """Return when the files are recorded, or that has failed; at once if this is not the first call of the step."""
        if self._checkpoints is None:
            return
        async with self._under_way:
            if self._is_due:
                await self._checkpoints.before_step(self._run, self._ledger.row.seq, self._tools)
                self._is_due = False  # behind it: if this call is cancelled, the next one records

    async def end(self) -> None:
        """Record what the run has made of the files, before clients hear of its end."""
        if self._checkpoints is not None:
            await self._checkpoints.after_run(self._run, self._ledger.row.seq)
