"""Which records and events rewinds abandon."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zotd.core.lineage import RewindPoint, events_left, holds, records_left


def rewind(number, to):
    return RewindPoint(number, to, 10 * number, 10 * to)


@pytest.mark.parametrize(
    ("rewinds", "left"),
    [
        ([], []),
        ([(7, 4)], [(5, 6)]),
        ([(7, 6)], []),
        ([(7, 4), (10, 5)], [(6, 9)]),
        ([(7, 4), (10, 8)], [(5, 6), (9, 9)]),
        ([(7, 4), (10, 4)], [(5, 9)]),
        ([(5, 2), (9, 1), (12, 4)], [(5, 11)]),
    ],
)
def test_a_rewind_abandons_everything_after_its_target(rewinds, left):
    assert records_left([rewind(*one) for one in rewinds]) == left


def test_events_and_records_are_numbered_separately():
    assert records_left([rewind(7, 4)]) == [(5, 6)]
    assert events_left([rewind(7, 4)]) == [(41, 69)]


def walked(rewinds, end):
    """The remaining numbers, found by walking back from the end one by one."""
    back = dict(rewinds)
    counts, number = set(), end
    while number > 0:
        if number in back:
            number = back[number]
            continue
        counts.add(number)
        number -= 1
    return counts


@given(st.lists(st.tuples(st.integers(2, 30), st.integers(1, 29)), max_size=8, unique_by=lambda pair: pair[0]))
def test_abandoned_numbers_are_those_not_reached_by_walking_back(pairs):
    rewinds = sorted((at, to) for at, to in pairs if to < at)
    left = records_left([rewind(*pair) for pair in rewinds])
    marks = {at for at, _ in rewinds}
    counted = {number for number in range(1, 36) if not holds(left, number)} - marks
    assert counted == walked(rewinds, 35) - marks
    assert left == sorted(left)
