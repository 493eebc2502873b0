"""The plan in the live area: a card that changes in place while the plan has steps that are not done."""

from collections.abc import Sequence

from zotd.wire.plan import ACTIVE, DONE, REJECTED, PlanStep
from zottui.state import ViewState
from zottui.theme import TextRole
from zottui.ui_context import Row
from zottui.widgets.cells import clean, fit, piece

MAX_ROWS = 6
"""Most rows of the card: the steps around the one that is being done."""

_MARKS = {DONE: (TextRole.SUCCESS, "✓"), ACTIVE: (TextRole.ACCENT, "▸")}


def plan_card(state: ViewState, width: int, height: int) -> list[Row]:
    """Return at most `height` rows: how far the plan is, and some steps; without a run only the next step."""
    plan = state.plan
    if plan is None or height <= 0 or all(step.state == DONE for step in plan.steps):
        return []
    is_asked = any(one.tool_id == plan.call for one in state.approvals)  # the question shows the steps
    if is_asked or (plan.status == REJECTED and not state.planning):
        return []
    steps, room = plan.steps, min(height, MAX_ROWS) - 1
    done = sum(step.state == DONE for step in steps)
    head = [
        piece(TextRole.STRONG, "plan"),
        piece(TextRole.MUTED, f"  {done} of {len(steps)} done  {clean(plan.status)}"),
    ]
    if state.run is None or room <= 0:
        return [fit([*head, piece(TextRole.TEXT, f"  {clean(steps[_current(steps)].text)}")], width)]
    # The step before the current one stays in view, so that a tick is seen where it happens.
    first = max(0, min(_current(steps) - 1, len(steps) - room))
    return [fit(row, width) for row in (head, *map(_row, steps[first : first + room]))]


def _current(steps: Sequence[PlanStep]) -> int:
    """Return the index of the active step, else of the first that is not done."""
    states = [step.state for step in steps]
    return states.index(ACTIVE) if ACTIVE in states else next(at for at, one in enumerate(states) if one != DONE)


def _row(step: PlanStep) -> Row:
    role, mark = _MARKS.get(step.state, (TextRole.MUTED, "○"))
    words = TextRole.MUTED if step.state == DONE else TextRole.TEXT
    return [piece(role, f"  {mark}"), piece(words, f" {clean(step.text)}")]
