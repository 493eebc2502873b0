"""Which model of several a run asks, through outages of all kinds."""

from collections.abc import Hashable
from functools import partial

from hypothesis import given
from hypothesis import strategies as st

from zotd.core.outages import FIRST_REST_S, GROWTH, ModelOutages
from zotd.core.retry import Failure, ModelError, RetryPolicy
from zotd.runs.model_ladder import PROBE, ModelLadder, OpenedModel, Rung
from zotd.testing.script_model import ScriptModel

PATIENCE = RetryPolicy(patience_s=3600)
BRIEF_S = 30.0
BUSY = ModelError(Failure.OVERLOADED, "busy")
NO_CREDIT = ModelError(Failure.QUOTA, "no credit")
TOO_LONG = ModelError(Failure.CONTEXT, "too long")


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Vendors:
    """Models `p/0`, `p/1` ..., shared by the runs of a test."""

    def __init__(self, count, locked=()):
        self.clock = Clock()
        self.outages: ModelOutages[Hashable] = ModelOutages()
        self.opened = []
        """The fallbacks that were opened."""
        self._count, self._locked = count, locked

    def ladder(self):
        own = OpenedModel("p", "0", ScriptModel())
        rungs = [Rung(f"p/{number}", number, partial(self._open, number)) for number in range(self._count)]
        return ModelLadder(
            own,
            rungs,
            patience=PATIENCE,
            fallback_patience_s=BRIEF_S,
            first_rest_s=FIRST_REST_S,
            outages=self.outages,
            clock=self.clock,
        )

    async def _open(self, number):
        if number in self._locked:
            raise ModelError(Failure.NO_KEY, "no key for P: set P_KEY")
        self.opened.append(number)
        return OpenedModel("p", str(number), ScriptModel())


async def moved(ladder, error):
    """The label and the patience in seconds of the model that is asked after `error`; None if there is none."""
    choice = await ladder.choose(error)
    if choice is None:
        return None
    ladder.take(choice)
    assert ladder.current is choice.opened
    return ladder.current.label, choice.policy.patience_s


async def test_models_are_asked_in_their_order_and_opened_when_they_are_needed():
    vendors = Vendors(3)
    ladder = vendors.ladder()
    assert (ladder.usual.patience_s, ladder.is_fallback) == (BRIEF_S, False)
    assert await moved(ladder, BUSY) == ("p/1", BRIEF_S)
    assert (ladder.is_fallback, vendors.opened) == (True, [1])
    assert await moved(ladder, NO_CREDIT) == ("p/2", BRIEF_S)


async def test_when_all_have_failed_the_best_that_may_recover_is_waited_for():
    ladder = Vendors(3).ladder()
    assert [await moved(ladder, error) for error in (NO_CREDIT, BUSY, BUSY)] == [
        ("p/1", BRIEF_S),
        ("p/2", BRIEF_S),
        ("p/1", PATIENCE.patience_s),
    ]
    assert await moved(ladder, NO_CREDIT) == ("p/2", PATIENCE.patience_s)
    assert await moved(ladder, BUSY) is None


async def test_when_no_failure_can_pass_the_run_is_over():
    ladder = Vendors(2).ladder()
    assert await moved(ladder, NO_CREDIT) == ("p/1", BRIEF_S)
    assert await moved(ladder, NO_CREDIT) is None


async def test_a_fallback_that_cannot_be_used_is_skipped_and_named():
    vendors = Vendors(3, locked={1})
    ladder = vendors.ladder()
    assert await moved(ladder, NO_CREDIT) == ("p/2", BRIEF_S)
    assert ladder.take_notes() == ["the fallback p/1 is skipped: no key for P: set P_KEY"]
    assert ladder.take_notes() == []


async def test_the_own_model_is_asked_again_in_the_step_after_its_rest_and_given_up_at_its_first_failure():
    vendors = Vendors(2)
    ladder = vendors.ladder()
    await moved(ladder, BUSY)
    ladder.answered()
    assert await moved(ladder, None) is None
    vendors.clock.now += FIRST_REST_S
    assert await moved(ladder, None) == ("p/0", PROBE.patience_s)
    assert await moved(ladder, BUSY) == ("p/1", BRIEF_S)
    ladder.answered()
    vendors.clock.now += FIRST_REST_S
    assert await moved(ladder, None) is None  # it rests twice as long
    vendors.clock.now += FIRST_REST_S
    assert await moved(ladder, None) == ("p/0", 0)
    ladder.answered()
    assert not ladder.begins_with_choice
    assert await moved(ladder, BUSY) == ("p/1", BRIEF_S)


async def test_other_runs_learn_of_an_outage_and_of_its_end():
    vendors = Vendors(2)
    first, second = vendors.ladder(), vendors.ladder()
    await moved(first, NO_CREDIT)
    assert second.begins_with_choice
    assert second.reason is NO_CREDIT
    assert await moved(second, None) == ("p/1", BRIEF_S)
    vendors.clock.now += GROWTH * FIRST_REST_S
    third = vendors.ladder()
    assert await moved(third, None) == ("p/0", 0)
    third.answered()
    assert not vendors.ladder().begins_with_choice


async def test_a_run_begins_with_its_own_model_when_all_of_them_rest():
    vendors = Vendors(2)
    ladder = vendors.ladder()
    await moved(ladder, NO_CREDIT)
    await moved(ladder, NO_CREDIT)
    assert await moved(vendors.ladder(), None) is None


async def test_a_model_that_rests_is_asked_after_those_that_do_not():
    vendors = Vendors(3)
    vendors.outages.failed(1, BUSY, vendors.clock.now)
    ladder = vendors.ladder()
    assert await moved(ladder, BUSY) == ("p/2", BRIEF_S)
    assert await moved(ladder, BUSY) == ("p/1", 0)


async def test_a_transcript_that_is_too_long_for_a_model_says_nothing_of_it_to_other_runs():
    vendors = Vendors(2)
    ladder = vendors.ladder()
    assert await moved(ladder, TOO_LONG) == ("p/1", BRIEF_S)
    ladder.answered()
    assert await moved(ladder, None) is None  # not for this transcript
    assert not vendors.ladder().begins_with_choice


@given(
    count=st.integers(2, 4),
    locked=st.sets(st.integers(1, 3)),
    failures=st.lists(st.sampled_from(sorted(Failure)), min_size=10, max_size=10),
)
async def test_in_one_outage_each_model_is_asked_once_briefly_and_once_patiently_at_most(count, locked, failures):
    ladder = Vendors(count, locked).ladder()
    asked = [("p/0", BRIEF_S)]
    for failure in failures:
        found = await moved(ladder, ModelError(failure, "it failed"))
        if found is None:
            break
        asked.append(found)
    assert len(asked) == len(set(asked)) <= 2 * count
    assert found is None, "the outage does not end"
    assert not {label for label, _ in asked} & {f"p/{number}" for number in locked}
    patient = [patience_s == PATIENCE.patience_s for _, patience_s in asked]
    assert patient == sorted(patient), "a model is waited for before all were asked"
