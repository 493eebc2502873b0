"""The plan in the live area: how far it is, in place, within a budget of rows."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.zottui.fake_ui import shown
from tests.zottui.widgets.states import BUSY, EVIL, LIVE, NOW, question
from zotd.wire.plan import ACTIVE, DONE, Plan, PlanStep
from zottui.widgets.live import activity
from zottui.widgets.plan import MAX_ROWS, plan_card

STEPS = [PlanStep("look", DONE), PlanStep("change", ACTIVE), PlanStep("test")]


def planned(steps, state=BUSY, status="approved"):
    return replace(state, plan=Plan(steps, 1, status))


def screen(state, width=40, height=12):
    return shown(plan_card(state, width, height), width, height)


def test_the_steps_are_shown_with_their_states():
    assert screen(planned(STEPS)) == "plan  1 of 3 done  approved\n  ✓ look\n  ▸ change\n  ○ test"


def test_without_a_run_only_the_next_step_is_shown():
    assert screen(planned(STEPS, LIVE)) == "plan  1 of 3 done  approved  change"
    assert screen(planned([PlanStep("look", DONE), PlanStep("test")], LIVE)) == "plan  1 of 2 done  approved  test"


def test_a_plan_that_is_done_or_has_no_steps_takes_no_room():
    assert screen(planned([PlanStep("look", DONE)])) == screen(planned([])) == screen(BUSY) == ""
    rejected = planned(STEPS, LIVE, "rejected")
    assert screen(rejected) == ""
    assert screen(replace(rejected, planning=True)) == "plan  1 of 3 done  rejected  change"


def test_while_a_person_is_asked_the_question_shows_the_steps():
    asked = replace(planned(STEPS, status="proposed"), approvals=(question(tool="plan", tool_id="c1"),))
    assert screen(replace(asked, plan=Plan(STEPS, 1, "proposed", call="c1"))) == ""
    assert screen(replace(asked, plan=Plan(STEPS, 1, "proposed", call="c2"))) != ""


def test_of_a_long_plan_the_steps_around_the_current_one_are_shown():
    steps = [PlanStep(str(number), DONE if number < 20 else "pending") for number in range(40)]
    assert screen(planned(steps)).split("\n")[1:] == ["  ✓ 19", "  ○ 20", "  ○ 21", "  ○ 22", "  ○ 23"]
    assert screen(planned([*steps[:39], PlanStep("39", ACTIVE)])).split("\n")[-1] == "  ▸ 39"


def test_the_run_keeps_half_of_the_rows():
    rows = shown(activity(planned(STEPS), NOW, 40, 4), 40, 4).split("\n")
    assert rows == ["⠋ working… 10s", "plan  1 of 3 done  approved", "  ✓ look"]


@given(st.lists(st.builds(PlanStep, st.just(EVIL), st.sampled_from(["pending", ACTIVE, DONE, "?"])), max_size=9))
def test_no_plan_steers_a_terminal_or_takes_more_rows(steps):
    for height in range(8):
        rows = plan_card(planned(steps), 12, height)
        assert len(rows) <= min(height, MAX_ROWS)
        shown(rows, 12, max(height, 1))
