"""Pages of messages in both directions, and what of them stays in memory."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from tests.zottui.viewer.conversations import Stored, call, fake_ui, lines, result, shell, talk, user, zot
from zottui.viewer import loaded as limits
from zottui.viewer.loaded import Loaded
from zottui.viewer.pages import Pages
from zottui.viewer.turns import Numbers, turns

GAPS = st.lists(st.sampled_from([1, 1, 1, 2, 3, 150, 151, 152, 1000]), min_size=1, max_size=60)


def seqs(messages):
    return [message.seq for message in messages]


def messages_at(gaps, chars):
    at = 0
    made = []
    for gap, size in zip(gaps, chars, strict=False):
        at += gap
        made.append(user(at, "x" * size))
    return made


@given(GAPS, st.lists(st.sampled_from([1, 40, 900]), min_size=60, max_size=60), st.integers(0, 3000))
def test_newer_messages_come_without_a_gap_however_far_apart_and_long_they_are(gaps, chars, start):
    stored = Stored(messages_at(gaps, chars), page_chars=1000)

    async def go():
        async with fake_ui(stored) as place:
            return await Pages(place, "s1").after(start)

    came = asyncio.run(go())
    due = [message for message in stored.messages if message.seq > start]
    assert came == due[: len(came)]
    assert bool(came) == bool(due)
    assert len(stored.asked) < 40


async def test_prompts_are_told_with_the_message_before_each_newest_first():
    stored = Stored([*talk(700), shell(2801, "make", "done"), user(2803, "last")])
    async with fake_ui(stored) as place:
        told = [(turn.text, turn.seq, turn.before) async for turn in turns(place, "s1")]
    assert told[0] == ("last", 2803, 2801)
    assert told[1] == ("question 700", 2797, 2795)
    assert told[-1] == ("question 1", 1, None)
    assert len(told) == 701
    assert len(stored.asked) == 3


def test_prompts_have_numbers_when_all_are_counted_also_those_that_came_meanwhile():
    numbers = Numbers()
    numbers.add(30)
    numbers.add(60)
    numbers.complete([50, 30, 10])
    assert (len(numbers), numbers.is_complete) == (4, True)
    assert [numbers.of(seq) for seq in (9, 10, 49, 50, 59, 99)] == [0, 1, 2, 3, 3, 4]
    assert [numbers.seq(n) for n in (0, 1, 4, 5)] == [None, 10, 60, None]
    assert [numbers.beyond(30, down=down) for down in (True, False)] == [50, 10]
    assert [numbers.beyond(seq, down=down) for seq, down in ((60, True), (10, False))] == [None, None]


def test_messages_far_from_the_cursor_are_dropped_beyond_the_limit():
    loaded = Loaded(talk(300, first=1000), has_older=True)
    loaded.add_older(talk(50, first=950), loaded.first, has_older=True, near=3 * 1000)
    assert len(loaded) == limits.MOST_MESSAGES
    assert (loaded.first, loaded.has_newer) == (4 * 950 - 3, True)
    loaded.add_newer(talk(50, first=1250), loaded.last, has_newer=False, near=4 * 1250)
    assert len(loaded) == limits.MOST_MESSAGES
    assert (loaded.last, loaded.has_older, loaded.has_newer) == (4 * 1299 - 1, True, False)


def test_long_outputs_count_more_but_messages_near_the_cursor_stay():
    loaded = Loaded([user(1000 + n, "x" * 100_000) for n in range(100)])
    loaded.add_older([user(n, "x" * 100_000) for n in range(1, 11)], 1000, has_older=False, near=5)
    assert seqs(loaded.messages)[:11] == [*range(1, 11), 1000]
    assert len(loaded) == 4 + limits.NEAR
    assert loaded.has_newer


def test_a_page_that_was_asked_for_before_the_reader_went_elsewhere_is_dropped():
    loaded = Loaded(talk(3, first=50))
    loaded.add_older(talk(2, first=10), 999, has_older=True, near=200)
    loaded.add_newer(talk(2, first=90), 999, has_newer=True, near=200)
    assert loaded.messages == talk(3, first=50)


def test_a_result_belongs_to_the_message_with_its_call():
    loaded = Loaded([user(1, "go"), zot(2, "", call("a"), call("b")), result(3, "a", "1"), result(4, "b", lines(2))])
    assert seqs(loaded.with_results(1)) == [2, 3, 4]
    assert [loaded.caller(at) for at in range(4)] == [0, 1, 1, 1]
    assert Loaded([result(4, "b", "2")]).caller(0) == -1
