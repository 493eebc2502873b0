"""Changes of a session's plan, by people and by the model. Each takes the plan as it is and returns the next one.

    nothing ──> draft <──> (edits, states)
                  │  ^
      proposed <──┘  ├── the question ends without a decision
         │  └────────┘
         ├──> approved    stays so while people edit it, or the model only changes states
         └──> rejected    with a comment; the next change makes it a draft

An edit of a person names the revision that the person saw, so of two edits of the same plan the first one counts. The model
names none: what it has not been told yet is known (`core.transcript`).
"""

from collections.abc import Sequence

from msgspec.structs import replace

from zotd.wire.plan import APPROVED, DRAFT, MARKS, MAX_STEPS, PROPOSED, REJECTED, STEP_CHARS, Plan, PlanStep, step_lines

EMPTY = Plan([], 0, DRAFT)
"""What there is before the first change."""

EDITED = (
    "[The user has changed the plan. It is now:\n{plan}\n"
    "Work by it, and keep the states of its steps up to date with the tool plan.]"
)
"""What the model is told."""


BEGUN = (
    "[The user wants a plan before anything is changed: the session is read-only until a person has approved one. Look at what"
    " you need to know, then propose the plan with the tool plan, and work by it when it is approved.]"
)
ENDED = "[The user has ended the planning: the session is no longer read-only because of it, its mode is {mode} again.]"
"""What the model is told of `/plan` and `/plan off`."""


class PlanError(ValueError):
    """The change is not possible; the message is one sentence."""


class PlanConflictError(PlanError):
    """The change is not about the plan as it is."""


def checked(steps: Sequence[PlanStep]) -> list[PlanStep]:
    """Return the steps in their stored form: each text on one line.

    Raises:
        PlanError: there are too many, one is empty or too long, or has a state that does not exist.
    """
    if len(steps) > MAX_STEPS:
        raise PlanError(f"a plan has at most {MAX_STEPS} steps, not {len(steps)}")
    found = [PlanStep(" ".join(step.text.split()), step.state) for step in steps]
    for number, step in enumerate(found, 1):
        if not 0 < len(step.text) <= STEP_CHARS:
            raise PlanError(f"step {number} has {len(step.text)} characters; a step has 1 to {STEP_CHARS}")
        if step.state not in MARKS:
            raise PlanError(f'step {number} has the state "{step.state[:20]}"; there are {", ".join(MARKS)}')
    return found


def edited(
    plan: Plan | None,
    steps: Sequence[PlanStep],
    *,
    revision: int,
    by: str,
    approves: bool = True,
    is_asked: bool = False,
) -> Plan:
    """Return the plan with the steps that a person has given it; the same object if that changes nothing.

    `revision` is the one that the person saw, 0 if there was no plan; `approves`: that person may approve plans; `is_asked`: a
    person is being asked about the plan.

    Raises:
        PlanError: the steps are none that a plan can have.
        PlanConflictError: the plan has changed since, or a person is asked about it.
    """
    plan, found = plan or EMPTY, checked(steps)
    if revision != plan.revision:
        raise PlanConflictError(
            f"the plan was changed meanwhile (it has the revision {plan.revision}, not {revision}); look at it and repeat"
            " your change"
        )
    if is_asked:
        raise PlanConflictError("the plan waits for a decision; approve it with your changes, or reject it")
    if plan.revision and found == plan.steps:
        return plan
    status = APPROVED if plan.status == APPROVED and approves else DRAFT
    return _next(plan, found, status, by=by)


def updated(plan: Plan | None, steps: Sequence[PlanStep], call: str) -> Plan:
    """Return the plan as the model has changed it with the tool call `call`; the same object if it did so before.

    Raises PlanError if the steps are none that a plan can have.
    """
    plan, found = plan or EMPTY, checked(steps)
    if plan.call == call:
        return plan
    keeps_texts = [step.text for step in found] == [step.text for step in plan.steps]
    status = APPROVED if plan.status == APPROVED and keeps_texts else DRAFT
    return _next(plan, found, status, call=call)


def proposed(plan: Plan | None, steps: Sequence[PlanStep], call: str) -> Plan:
    """Return the plan that the model proposes with the call; the same object if it did so before. Raises as `updated`."""
    plan, found = plan or EMPTY, checked(steps)
    if plan.call == call:
        return plan
    return _next(plan, found, PROPOSED, call=call)


def approved(plan: Plan | None, steps: Sequence[PlanStep], call: str, by: str) -> Plan:
    """Return the plan as a person has approved what the call proposes, perhaps with changes. Raises as `updated`."""
    return _next(plan or EMPTY, checked(steps), APPROVED, call=call, by=by)


def rejected(plan: Plan, comment: str, by: str) -> Plan:
    """Return the plan after a person has rejected it."""
    return replace(_next(plan, plan.steps, REJECTED, by=by), comment=comment)


def withdrawn(plan: Plan) -> Plan:
    """Return the plan after the question about it has ended without a decision."""
    return _next(plan, plan.steps, DRAFT)


def returned(past: Plan | None, now: Plan | None) -> Plan | None:
    """Return the plan of a session that goes back to `past` from `now`, or begins with it: `now` is None then.

    Its revision is one that nobody has seen with other steps, and no question about it is pending any more.
    """
    if past is not None and past.status == PROPOSED:
        past = replace(past, status=DRAFT)
    if now is None or (past is not None and replace(past, revision=now.revision) == now):
        return past if now is None else now
    return replace(past or EMPTY, revision=now.revision + 1)


def edit_note(plan: Plan) -> str:
    """Return what the model is told of a person's edit."""
    return EDITED.format(plan="\n".join(step_lines(plan.steps)) or "(it has no steps)")


def _next(plan: Plan, steps: list[PlanStep], status: str, *, call: str = "", by: str = "") -> Plan:
    return Plan(steps, plan.revision + 1, status, by=by, call=call or plan.call)
