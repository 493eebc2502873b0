"""Property test: people and the model change a plan with stale, repeated and reordered changes."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from zotd.core import plan as plans
from zotd.core.plan import PlanConflictError, PlanError
from zotd.wire.plan import APPROVED, DRAFT, MARKS, MAX_STEPS, PROPOSED, REJECTED, STEP_CHARS, Plan, PlanStep

steps = st.lists(
    st.builds(PlanStep, st.sampled_from(["look", "change it", "test  it"]), st.sampled_from([*MARKS])), max_size=4
)
people = st.sampled_from(["ann", "ben"])
calls = st.integers(0, 8).map("c_{}".format)


class Desk(RuleBasedStateMachine):
    """What each person has seen last, and every plan that there was, by its revision."""

    def __init__(self):
        super().__init__()
        self.plan: Plan | None = None
        self.seen = {"ann": 0, "ben": 0}
        self.history: dict[int, Plan] = {}
        self.asked = False

    @initialize()
    def begin(self):
        self.now = 0

    def take(self, plan):
        if plan is self.plan:
            return
        assert plan.revision == self.now + 1
        assert plan.revision not in self.history
        self.now, self.plan = plan.revision, plan
        self.history[plan.revision] = plan

    @rule(who=people)
    def look(self, who):
        self.seen[who] = self.now

    @rule(who=people, steps=steps)
    def edit(self, who, steps):
        before = self.plan
        try:
            plan = plans.edited(before, steps, revision=self.seen[who], by=who, is_asked=self.asked)
        except PlanConflictError:
            assert self.asked or self.seen[who] != self.now
            return
        assert not self.asked
        assert self.seen[who] == self.now
        self.take(plan)
        if plan is not before:
            assert plan.by == who
            assert plan.status == (APPROVED if before and before.status == APPROVED else DRAFT)
            assert plan.call == (before.call if before else "")

    @rule(call=calls, steps=steps)
    def update(self, call, steps):
        if self.asked:
            return
        before = self.plan
        plan = plans.updated(before, steps, call)
        assert (plan is before) == (before is not None and before.call == call)
        self.take(plan)
        assert plans.updated(plan, [], call) is plan, "the same call changes nothing again"

    @rule(call=calls, steps=steps)
    def propose(self, call, steps):
        if self.asked:
            return
        plan = plans.proposed(self.plan, steps, call)
        self.take(plan)
        self.asked = plan.status == PROPOSED

    @rule(who=people, allows=st.booleans(), changed=st.none() | steps)
    def decide(self, who, allows, changed):
        if not self.asked or self.plan is None:
            return
        plan = self.plan
        self.take(
            plans.approved(plan, plan.steps if changed is None else changed, plan.call, who)
            if allows
            else plans.rejected(plan, "not so", who)
        )
        self.asked = False
        assert (self.plan.status, self.plan.by) == (APPROVED if allows else REJECTED, who)

    @rule()
    def give_up(self):
        if self.asked and self.plan is not None:
            self.take(plans.withdrawn(self.plan))
            self.asked = False

    @rule(data=st.data())
    def rewind(self, data):
        if self.asked:
            return
        past = data.draw(st.none() | st.sampled_from(list(self.history.values()))) if self.history else None
        before, plan = self.plan, plans.returned(past, self.plan)
        if plan is not before and plan is not None:
            self.take(plan)
        assert (plan.steps if plan else []) == (past.steps if past else [])

    @invariant()
    def a_person_only_decides_what_the_model_has_proposed(self):
        assert self.plan is None or self.asked == (self.plan.status == PROPOSED)


def test_no_change_of_a_plan_is_lost_in_any_order():
    run_state_machine_as_test(Desk)


def test_a_step_is_one_line_of_bounded_length():
    assert plans.checked([PlanStep(" run\nthe  tests ")]) == [PlanStep("run the tests")]


@pytest.mark.parametrize("wrong", [PlanStep(" "), PlanStep("x" * (STEP_CHARS + 1)), PlanStep("x", "begun")])
def test_a_step_without_text_or_with_an_unknown_state_is_refused(wrong):
    with pytest.raises(PlanError, match=r"^step 2 has "):
        plans.checked([PlanStep("x"), wrong])


def test_a_plan_of_too_many_steps_is_refused():
    with pytest.raises(PlanError, match=r"^a plan has at most 50 steps, not 51$"):
        plans.checked([PlanStep("x")] * (MAX_STEPS + 1))
