"""Which failures of a model request are retried, when, and for how long."""

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
"""The random number for a delay without jitter."""

randoms = st.floats(0, 1, exclude_max=True)


def error(failure=Failure.SERVER, **fields):
    return ModelError(failure, "it failed", **fields)


def delay(failed=None, *, policy=None, failures=1, elapsed_s=0.0, random=MIDDLE):
    policy = policy or RetryPolicy()
    return policy.delay_s(failed or error(), failures=failures, elapsed_s=elapsed_s, random=random)


def test_each_pause_doubles_up_to_the_longest():
    pauses = [delay(failures=failures) for failures in range(1, 12)]
    assert pauses[:5] == [BASE_S, 2 * BASE_S, 4 * BASE_S, 8 * BASE_S, 16 * BASE_S]
    assert pauses[-1] == PAUSE_S


def test_hours_of_failures_do_not_overflow():
    assert delay(failures=100_000) == PAUSE_S


def test_retries_end_when_the_patience_is_used_up():
    assert delay(elapsed_s=PATIENCE_S - 1) is not None
    assert delay(elapsed_s=PATIENCE_S) is None
    assert delay(error(retry_after_s=1), elapsed_s=PATIENCE_S) is None


def test_the_last_attempt_is_made_before_the_patience_is_used_up():
    assert delay(failures=20, elapsed_s=PATIENCE_S - 3) == 3


def test_nothing_is_retried_without_patience():
    assert delay(policy=RetryPolicy(patience_s=0)) is None


@pytest.mark.parametrize("failure", Failure)
def test_only_temporary_failures_are_retried(failure):
    passing = {
        *(Failure.RATE_LIMIT, Failure.OVERLOADED, Failure.SERVER),
        *(Failure.CONNECTION, Failure.UNREACHABLE, Failure.CUT),
    }
    assert (delay(error(failure)) is not None) == (failure in passing)


@pytest.mark.parametrize("failure", sorted(set(Failure) - REPEATED))
def test_retry_after_does_not_make_a_permanent_failure_retryable(failure):
    assert delay(error(failure, retry_after_s=1)) is None


@given(st.floats(0, PATIENCE_S), st.integers(1, TAKEN_AT_ITS_WORD), randoms)
def test_retry_after_is_honoured_exactly(asked, failures, random):
    assert delay(error(retry_after_s=asked), failures=failures, random=random) == asked


def test_retry_after_zero_is_honoured_only_a_few_times():
    assert delay(error(retry_after_s=0), failures=TAKEN_AT_ITS_WORD + 1) == BASE_S * 2**TAKEN_AT_ITS_WORD


def test_retry_after_beyond_the_patience_ends_the_retries():
    assert delay(error(retry_after_s=100), elapsed_s=PATIENCE_S - 100) == 100
    assert delay(error(retry_after_s=101), elapsed_s=PATIENCE_S - 100) is None


@given(st.integers(1, 10_000), randoms, st.floats(0, PATIENCE_S, exclude_max=True))
def test_jitter_spreads_pauses_within_the_maximum(failures, random, elapsed_s):
    planned = min(PAUSE_S, BASE_S * 2.0 ** min(failures - 1, 20))
    left = PATIENCE_S - elapsed_s
    found = delay(failures=failures, random=random, elapsed_s=elapsed_s)
    assert found is not None
    assert min(planned * (1 - JITTER), left) <= found <= min(PAUSE_S, planned * (1 + JITTER), left)


def test_jitter_spreads_sessions_that_failed_together():
    assert len({delay(random=number / 10) for number in range(10)}) == 10


def test_an_error_is_its_sentence_for_the_user():
    failed = ModelError(Failure.AUTH, "the key was refused; zot login gets a new one")
    assert str(failed) == failed.sentence == "the key was refused; zot login gets a new one"


@pytest.mark.parametrize(
    ("elapsed_s", "words"), [(59.6, "3 tries in 60 s"), (600, "3 tries in 10 min"), (14400, "3 tries in 4.0 h")]
)
def test_giving_up_names_the_duration_and_how_to_continue(elapsed_s, words):
    sentence = gave_up(error(), failures=3, elapsed_s=elapsed_s)
    assert sentence == f"gave up after {words}: it failed; /continue tries again"


def test_a_failure_without_retries_keeps_its_sentence():
    assert gave_up(error(Failure.AUTH), failures=5, elapsed_s=100) == "it failed"
    assert gave_up(error(), failures=1, elapsed_s=0) == "it failed"


def test_a_failure_has_a_short_name_for_lists():
    assert error(Failure.OVERLOADED, status=529).brief == "HTTP 529"
    assert error(Failure.UNREACHABLE).brief == "no connection"
