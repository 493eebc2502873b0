"""The subagents that calls of one session wait for."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from zotd.wire import events
from zotd.wire.api import Approve


class Decide(Protocol):
    """Takes a person's decision, as `Session.decide` does."""

    def __call__(self, params: Approve, by: str, *, accepted: Callable[[], None]) -> Awaitable[None]:
        """Take the decision of `by`; `accepted` is called when it is on disk."""
        ...


class Children:
    """Of one session; ask it, and change it through `zotd.sessions.subagents`."""

    def __init__(self, changed: Callable[[], None]) -> None:
        """`changed` is called whenever the number of pending questions of subagents has changed."""
        self._changed = changed
        self._working: dict[str, Callable[[], bool]] = {}
        """By the id of the call that waits for it: whether the next daemon could go on with it as it is."""
        self._asked: dict[str, events.ApprovalRequested] = {}
        self._deciders: dict[str, Decide] = {}
        self.listeners: list[Callable[[events.ApprovalRequested], None]] = []
        """Told of each question of a subagent; they return at once and never raise."""
        self._run: str | None = None
        self._begun: set[str] = set()
        """Calls of that run that have begun a subagent."""

    def admit(self, run: str | None, call: str, limit: int) -> bool:
        """Count a subagent that a call of this run begins, or goes on with; False if the run has begun `limit` others."""
        if run != self._run:
            self._run, self._begun = run, set()
        if call not in self._begun and len(self._begun) >= limit:
            return False
        self._begun.add(call)
        return True

    @property
    def waiting_calls(self) -> set[str]:
        """The calls that wait for subagents."""
        return set(self._working)

    @property
    def outlasts(self) -> bool:
        """Whether a subagent waits for a person, or was drained: then the next daemon goes on with it."""
        return any(can_last() for can_last in self._working.values())

    @property
    def all_outlast(self) -> bool:
        """Whether that holds for each of them, and there are any."""
        return bool(self._working) and all(can_last() for can_last in self._working.values())

    @contextmanager
    def wait_for(self, call: str, can_last: Callable[[], bool]) -> Iterator[None]:
        """Inside the block this call waits for a subagent; `can_last`: whether the next daemon could go on with it as it is."""
        self._working[call] = can_last
        try:
            yield
        finally:
            del self._working[call]

    # --- questions --------------------------------------------------------------------------------------------

    @property
    def asked(self) -> Mapping[str, events.ApprovalRequested]:
        """What subagents, and theirs, ask people, by the ids of the approvals."""
        return self._asked

    def decider_of(self, approval: str) -> Decide | None:
        """Return what takes a decision about a question of a subagent; None: it is none of these."""
        return self._deciders.get(approval)

    def ask(self, question: events.ApprovalRequested, decide: Decide) -> None:
        """Add a question of a subagent, about which `decide` takes the decision."""
        self._asked[question.approval] = question
        self._deciders[question.approval] = decide
        self._changed()
        for listener in list(self.listeners):
            listener(question)

    def settle(self, approval: str) -> bool:
        """Remove a question; False if it was none of these."""
        if self._asked.pop(approval, None) is None:
            return False
        del self._deciders[approval]
        self._changed()
        return True
