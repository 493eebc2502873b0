"""A session's plan: what is to be done, step by step, for people and for the model."""

from collections.abc import Sequence
from types import MappingProxyType

from zotd.wire.base import Frozen

MAX_STEPS = 50
"""Most steps of a plan."""

STEP_CHARS = 500
"""Longest text of a step."""

PENDING, ACTIVE, DONE = "pending", "active", "done"

DRAFT, PROPOSED, APPROVED, REJECTED = "draft", "proposed", "approved", "rejected"

MARKS = MappingProxyType({PENDING: " ", ACTIVE: ">", DONE: "x"})
"""How the state of a step is written in text: `[x] run the tests`."""


EXPLAINED = """\
# A line for each step, in order: [ ] pending, [>] active, [x] done. A line without a mark is a pending step.
# Lines that begin with # are ignored.
"""
"""Stands above a plan that people edit as text."""


class PlanStep(Frozen, frozen=True, omit_defaults=False):
    """One step of a plan."""

    text: str
    """One line."""
    state: str = PENDING
    """`pending`, `active` or `done`."""


class Plan(Frozen, frozen=True, omit_defaults=False):
    """The plan as one change has left it."""

    steps: list[PlanStep]
    revision: int
    """1 more with each change; an edit names the one that it is about."""
    status: str
    """`draft`; `proposed`: a person is asked about it; `approved` or `rejected` by a person."""
    by: str = ""
    """Who made this change, for display; empty: the model."""
    comment: str = ""
    """Why it was rejected."""
    call: str = ""
    """Id of the last tool call with which the model changed it."""


def step_lines(steps: Sequence[PlanStep]) -> list[str]:
    """Return a line for each step, such as `[ ] run the tests`."""
    return [f"[{MARKS.get(step.state, '?')}] {step.text}" for step in steps]


def read_steps(written: str) -> list[PlanStep]:
    """Return the steps of a text as `EXPLAINED` says."""
    states = {f"[{mark}]": state for state, mark in MARKS.items()}
    steps = []
    for line in (line.strip() for line in written.splitlines()):
        if line and not line.startswith("#"):
            state = states.get(line[:3].lower())
            steps.append(PlanStep(line, PENDING) if state is None else PlanStep(line[3:].strip(), state))
    return steps
