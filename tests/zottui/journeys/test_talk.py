"""Journeys of talking."""

from tests.zottui.journeys.world import PROMPT


def test_a_prompt_is_answered(world):
    world.model.says("one\n\ntwo\n\nthree")
    zot = world.zot()
    zot.wait(PROMPT)
    zot.type("hi")
    zot.key("Enter")
    zot.wait("^three$")
    print(zot.history())
    assert 0
