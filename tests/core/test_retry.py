"""Which failures of a model request are tried again, when, and for how long."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zotd.core.retry import (
    BASE_S,
    JITTER,
    PATIENCE_S,
    PAUSE_S,
    REPEATED,
    TAKEN_AT_ITS_WORD,
    Failure,
    ModelError,
    RetryPolicy,
    gave_up,
)

MIDDLE = 0.5
"""The random number that moves a delay by nothing."""

randoms = st.floats(0, 1, exclude_max=True)


def error(failure=Failure.SERVER, **fields):
    return ModelError(failure, "it failed", **fields)


def delay(failed=None, *, policy=None, failures=1, elapsed_s=0.0, random=MIDDLE):
    policy = policy or RetryPolicy()
    return policy.delay_s(failed or error(), failures=failures, elapsed_s=elapsed_s, random=random)


def test_each_pause_is_twice_the_one_before_up_to_the_longest():
    pauses = [delay(failures=failures) for failures in range(1, 12)]
    assert pauses[:5] == [BASE_S, 2 * BASE_S, 4 * BASE_S, 8 * BASE_S, 16 * BASE_S]
    assert pauses[-1] == PAUSE_S


def test_hours_of_failures_do_not_overflow():
    assert delay(failures=100_000) == PAUSE_S


def test_a_run_gives_up_when_its_patience_is_used_up():
    assert delay(elapsed_s=PATIENCE_S - 1) is not None
    assert delay(elapsed_s=PATIENCE_S) is None
    assert delay(error(retry_after_s=1), elapsed_s=PATIENCE_S) is None


def test_the_last_try_comes_before_the_patience_is_used_up():
    assert delay(failures=20, elapsed_s=PATIENCE_S - 3) == 3


def test_without_patience_the_first_failure_is_the_last():
    assert delay(policy=RetryPolicy(patience_s=0)) is None


@pytest.mark.parametrize("failure", Failure)
def test_only_what_may_pass_by_itself_is_tried_again(failure):
    passing = {
        *(Failure.RATE_LIMIT, Failure.OVERLOADED, Failure.SERVER),
        *(Failure.CONNECTION, Failure.UNREACHABLE, Failure.CUT),
    }
    assert (delay(error(failure)) is not None) == (failure in passing)


@pytest.mark.parametrize("failure", sorted(set(Failure) - REPEATED))
def test_a_provider_cannot_ask_for_the_repetition_of_what_is_hopeless(failure):
    assert delay(error(failure, retry_after_s=1)) is None


@given(st.floats(0, PATIENCE_S), st.integers(1, TAKEN_AT_ITS_WORD), randoms)
def test_the_providers_own_delay_is_kept_to_the_letter(asked, failures, random):
    assert delay(error(retry_after_s=asked), failures=failures, random=random) == asked


def test_a_provider_that_always_asks_for_no_pause_gets_longer_ones_all_the_same():
    assert delay(error(retry_after_s=0), failures=TAKEN_AT_ITS_WORD + 1) == BASE_S * 2**TAKEN_AT_ITS_WORD


def test_a_provider_that_asks_for_more_than_the_patience_that_is_left_gets_none():
    assert delay(error(retry_after_s=100), elapsed_s=PATIENCE_S - 100) == 100
    assert delay(error(retry_after_s=101), elapsed_s=PATIENCE_S - 100) is None


@given(st.integers(1, 10_000), randoms, st.floats(0, PATIENCE_S, exclude_max=True))
def test_pauses_are_spread_around_the_plan_and_never_too_long(failures, random, elapsed_s):
    planned = min(PAUSE_S, BASE_S * 2.0 ** min(failures - 1, 20))
    left = PATIENCE_S - elapsed_s
    found = delay(failures=failures, random=random, elapsed_s=elapsed_s)
    assert found is not None
    assert min(planned * (1 - JITTER), left) <= found <= min(PAUSE_S, planned * (1 + JITTER), left)


def test_sessions_that_failed_together_do_not_come_back_together():
    assert len({delay(random=number / 10) for number in range(10)}) == 10


def test_the_sentence_is_for_the_user():
    failed = ModelError(Failure.AUTH, "the key was refused; zot login gets a new one")
    assert str(failed) == failed.sentence == "the key was refused; zot login gets a new one"


@pytest.mark.parametrize(
    ("elapsed_s", "words"), [(59.6, "3 tries in 60 s"), (600, "3 tries in 10 min"), (14400, "3 tries in 4.0 h")]
)
def test_who_gives_up_says_after_how_long_and_how_to_go_on(elapsed_s, words):
    sentence = gave_up(error(), failures=3, elapsed_s=elapsed_s)
    assert sentence == f"gave up after {words}: it failed; /continue tries again"


def test_a_failure_that_is_not_tried_again_is_said_as_it_is():
    assert gave_up(error(Failure.AUTH), failures=5, elapsed_s=100) == "it failed"
    assert gave_up(error(), failures=1, elapsed_s=0) == "it failed"


def test_a_failure_is_named_briefly_for_lists():
    assert error(Failure.OVERLOADED, status=529).brief == "HTTP 529"
    assert error(Failure.UNREACHABLE).brief == "no connection"
