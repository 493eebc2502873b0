"""`/plan`: the model only reads, proposes a plan, and the person approves it; then its steps are ticked in place."""

from tests.zottui.journeys.deciding import decide
from tests.zottui.journeys.world import PROMPT, rests
from zotd.testing.script import CallPart, TextPart


def proposal(*states):
    texts = ("read the parser", "write the test")
    steps = [{"text": text, "state": state} for text, state in zip(texts, states, strict=True)]
    return CallPart("plan", {"steps": steps})


def test_a_plan_is_approved_and_its_steps_are_ticked_in_place(world):
    gate = world.model.gate()
    world.model.says(
        [proposal("pending", "pending")],
        [proposal("done", "active")],
        [TextPart(["Halfway. "]), gate],
        [proposal("done", "done")],
    )
    zot = world.zot()
    zot.wait(PROMPT)
    zot.type("/plan test the parser")
    zot.key("Enter")
    zot.wait("plan needs you")
    zot.wait(r"\[ \] read the parser")
    assert "planning" in zot.screen()
    decide(zot, "y", "Halfway")
    zot.wait("plan  1 of 2 done  approved")
    zot.wait("✓ read the parser")
    zot.wait("▸ write the test")
    assert "planning" not in zot.screen().splitlines()[-1]
    world.model.open(gate)
    rests(zot)


def test_a_rejection_is_read_by_the_model_and_the_session_goes_on_planning(world):
    world.model.says([proposal("pending", "pending")], "I will think again")
    zot = world.zot()
    zot.wait(PROMPT)
    zot.type("/plan test the parser")
    zot.key("Enter")
    zot.wait("plan needs you")
    decide(zot, "f", "why not")
    zot.type("too short")
    zot.key("Enter")
    zot.wait("I will think again")
    rests(zot)
    assert "the user has rejected the plan: too short" in world.model.seen()
    zot.wait(r"planning")
    zot.type("/plan off")
    zot.key("Enter")
    zot.wait("planning has ended; the mode is yolo again", where="history")
