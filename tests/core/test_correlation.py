"""Pending requests and their answers."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from zotd.core.correlation import REMEMBERED, Correlation


def test_an_answer_is_matched_with_its_request():
    calls = Correlation[str]("x")
    first, second = calls.open("first"), calls.open("second")
    assert first != second
    assert calls.peek(second) == "second"
    assert calls.answer(second) == "second"
    assert calls.answer(first) == "first"
    assert len(calls) == 0


def test_ids_of_two_peers_never_collide():
    assert Correlation[str]("x").open("call") != Correlation[str]("y").open("call")


def test_late_repeated_and_invented_answers_are_dropped_and_counted():
    calls = Correlation[str]("x")
    answered, cancelled, late = calls.open("a"), calls.open("c"), calls.open("l", deadline=1)
    calls.answer(answered)
    assert calls.cancel(cancelled)
    assert not calls.cancel(cancelled)
    calls.expire(1)
    assert [calls.answer(key) for key in (answered, cancelled, late, "x-99", "")] == [None] * 5
    assert (calls.dropped.late, calls.dropped.unknown) == (3, 2)
    assert calls.was_open(late)
    assert not calls.was_open("x-99")


def test_overdue_requests_are_closed():
    calls = Correlation[str]("x")
    calls.open("patient")
    slow, fast = calls.open("slow", deadline=20), calls.open("fast", deadline=10)
    assert calls.wake_at == 10
    assert calls.expire(9.9) == []
    assert calls.expire(10) == [(fast, "fast")]
    assert calls.expire(19) == []
    assert calls.expire(100) == [(slow, "slow")]
    assert list(calls) == ["patient"]


def test_all_requests_are_closed_when_the_peer_is_gone():
    calls = Correlation[str]("x")
    calls.open("a", deadline=1)
    calls.open("b")
    assert calls.fail_all() == ["a", "b"]
    assert calls.fail_all() == []
    assert calls.wake_at is None


def test_the_only_open_request_can_be_found_without_its_id():
    calls = Correlation[str]("x")
    assert calls.the_only() is None
    first = calls.open("a")
    assert calls.the_only() == first
    calls.open("b")
    assert calls.the_only() is None


def test_a_slow_call_before_many_fast_ones_does_not_leak_memory():
    calls = Correlation[str]("x")
    calls.open("slow", deadline=1)
    for number in range(20_000):
        calls.answer(calls.open("fast", deadline=60 + number))
    assert len(calls._deadlines) < 2 * REMEMBERED
    assert len(calls._closed) <= REMEMBERED


class AnyOrder(RuleBasedStateMachine):
    """Compares with a plain dictionary."""

    def __init__(self):
        super().__init__()
        self.calls = Correlation[int]("x")
        self.now = 0.0
        self.open = {}
        """Number and deadline by id."""
        self.closed = []
        self.count = 0
        self.late = 0

    def close(self, key):
        self.closed.append(key)
        return self.open.pop(key)[0]

    @rule(wait=st.none() | st.floats(0, 10))
    def request(self, wait):
        self.count += 1
        deadline = None if wait is None else self.now + wait
        key = self.calls.open(self.count, deadline)
        assert key not in self.open
        assert key not in self.closed
        self.open[key] = self.count, deadline

    @precondition(lambda self: bool(self.open))
    @rule(index=st.integers(0, 9), how=st.sampled_from(["answer", "cancel"]))
    def it_ends(self, index, how):
        key = list(self.open)[index % len(self.open)]
        number = self.close(key)
        assert (self.calls.answer(key) == number) if how == "answer" else self.calls.cancel(key)

    @precondition(lambda self: bool(self.closed))
    @rule(index=st.integers(0, 99))
    def an_answer_arrives_late_or_twice(self, index):
        assert self.calls.answer(self.closed[index % len(self.closed)]) is None
        self.late += 1

    @rule(seconds=st.floats(0, 5))
    def time_passes(self, seconds):
        self.now += seconds
        due = sorted(
            (when, int(key[2:]), key) for key, (_, when) in self.open.items() if when is not None and when <= self.now
        )
        found = self.calls.expire(self.now)
        assert sorted(key for key, _ in found) == sorted(key for *_, key in due)
        for key, number in found:
            assert self.close(key) == number

    @rule(really=st.integers(0, 5).map(lambda n: n == 0))
    def the_peer_is_gone(self, really):
        if really:
            assert self.calls.fail_all() == [self.close(key) for key in list(self.open)]

    @invariant()
    def open_requests_match_the_model(self):
        assert list(self.calls) == [number for number, _ in self.open.values()]
        assert self.calls.dropped.late == self.late
        assert self.calls.dropped.unknown == 0
        assert self.calls.wake_at == min((when for _, when in self.open.values() if when is not None), default=None)


def test_requests_match_a_plain_dictionary_in_any_order():
    thorough = settings(max_examples=80, stateful_step_count=40, deadline=None, report_multiple_bugs=False)
    run_state_machine_as_test(AnyOrder, settings=thorough)
