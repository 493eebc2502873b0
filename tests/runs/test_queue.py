"""What waits: first in, first out, unless somebody withdraws or moves it."""

import asyncio

import pytest

from zotd.core import records
from zotd.runs.queue import MAX_WAITING, SHOWN_CHARS, Job, Queue
from zotd.testing.histories import TIME
from zotd.wire import events
from zotd.wire.api import Started
from zotd.wire.content import Image, Text
from zotd.wire.errors import Code, CommandError


def prompt(key, *content, **fields):
    return records.Input(time=TIME, id=key, content=list(content) or [Text(f"do {key}")], **fields)


def job(key, *content, stored=True, **fields):
    return Job(lambda _: None, prompt(key, *content, **fields), stored=stored)


def queue_of(*keys):
    queue = Queue()
    for key in keys:
        queue.add(job(key))
    return queue


def order(queue):
    return [item.id for item in queue.items()]


def taken(queue):
    """The input of the job that is next."""
    found = queue.take(held=False)
    assert found is not None
    return found.input


def refusal(change):
    with pytest.raises(CommandError) as caught:
        change()
    return caught.value.code


# --- order ----------------------------------------------------------------------------------------------------


def test_the_first_one_in_is_the_first_one_out():
    queue = Queue()
    for key in "abc":
        queue.add(job(key))
    assert [taken(queue) for _ in range(3)] == [prompt("a"), prompt("b"), prompt("c")]
    assert queue.take(held=False) is None


def test_one_that_is_withdrawn_does_not_run():
    queue = queue_of("a", "b", "c")
    queue.withdraw("b")
    assert order(queue) == ["a", "c"]


@pytest.mark.parametrize(
    ("key", "position", "moved"),
    [
        ("c", 1, "cab"),
        ("a", 2, "bac"),
        ("a", 3, "bca"),
        ("a", 99, "bca"),
        ("b", 2, "abc"),
        ("b", 0, "bac"),
        ("c", -5, "cab"),
    ],
)
def test_a_moved_input_keeps_its_new_place(key, position, moved):
    queue = queue_of("a", "b", "c")
    queue.move(key, position)
    assert "".join(order(queue)) == moved


@pytest.mark.parametrize("key", ["gone", "a"])
def test_one_that_does_not_wait_cannot_be_changed(key):
    queue = queue_of("a", "b")
    first = taken(queue)
    assert refusal(lambda: queue.withdraw(key)) is Code.NOT_FOUND
    assert refusal(lambda: queue.move(key, 1)) is Code.NOT_FOUND
    assert order(queue) == ["a", "b"], "it has its place until it has started"
    [shown] = queue.started(first)
    assert order(queue) == [item.id for item in shown.items] == ["b"]


def test_more_than_the_limit_do_not_fit():
    queue = queue_of(*(f"i{number}" for number in range(MAX_WAITING)))
    assert refusal(lambda: queue.add(job("one more"))) is Code.QUEUE_FULL
    assert len(queue) == MAX_WAITING
    queue.take(held=False)
    queue.add(job("one more"))
    assert order(queue)[-1] == "one more"


def test_two_prompts_with_the_same_words_are_two():
    queue = queue_of("a", "b")
    same = [job("c", Text("x")), job("d", Text("x"))]
    for one in same:
        queue.add(one)
    queue.withdraw("d")
    assert order(queue) == ["a", "b", "c"]


def test_while_inputs_are_held_only_a_compaction_is_taken():
    queue = queue_of("a")
    compaction = Job(lambda _: None, instructions="short")
    queue.add(compaction)
    queue.add(job("b"))
    assert queue.take(held=True) is compaction
    assert queue.take(held=True) is None
    assert order(queue) == ["a", "b"]


def test_a_full_queue_that_is_held_takes_the_one_that_lets_it_go_on():
    queue = queue_of(*(f"i{number}" for number in range(MAX_WAITING)))
    queue.add(job("one more"), held=True)
    assert refusal(lambda: queue.add(job("yet another"), held=True)) is Code.QUEUE_FULL


def test_a_continued_run_comes_before_queued_inputs():
    queue = queue_of("a")
    going_on = Job(lambda _: None, resumes=True)
    queue.put_first(going_on)
    assert queue.take(held=True) is going_on
    assert order(queue) == ["a"]


# --- inputs that join a run -----------------------------------------------------------------------------------


def test_inputs_that_join_leave_the_queue_together_in_their_order_and_the_others_keep_theirs():
    queue = Queue()
    for key, mode in ("a", "queue"), ("b", "steer"), ("c", "queue"), ("d", "steer"):
        queue.add(job(key, mode=mode))
    assert queue.has_steering
    assert [joined.id for joined in queue.steering()] == ["b", "d"]
    assert order(queue) == ["a", "c"]
    assert (queue.has_steering, queue.steering()) == (False, [])


def test_a_moved_input_joins_at_its_new_place_and_a_withdrawn_one_never():
    queue = Queue()
    for key in "abc":
        queue.add(job(key, mode="steer"))
    queue.move("c", 1)
    queue.withdraw("b")
    assert [joined.id for joined in queue.steering()] == ["c", "a"]


def test_one_that_was_taken_to_start_does_not_join_what_it_starts():
    queue = Queue()
    queue.add(job("a", mode="steer"))
    assert taken(queue) is not None
    assert queue.steering() == []


def test_one_that_no_restart_would_know_of_does_not_join():
    queue = Queue()
    queue.add(job("a", stored=False, mode="steer"))
    assert (queue.has_steering, queue.steering(), len(queue)) == (False, [], 1)


# --- what people see ------------------------------------------------------------------------------------------


def test_a_waiting_input_is_shown_with_its_words_and_its_sender():
    queue = Queue()
    queue.add(job("a", Image("image/png", 3, "AAAA"), Text("what is "), Text("this?"), sender="zot", mode="steer"))
    assert queue.items() == [events.QueueItem("a", "what is this?", "zot", "steer")]


def test_long_words_are_cut_for_the_eye_only():
    queue = Queue()
    queue.add(job("a", Text("x" * 10_000)))
    assert queue.items()[0].text == "x" * SHOWN_CHARS
    assert taken(queue) == prompt("a", Text("x" * 10_000))


def test_compactions_and_inputs_that_are_not_stored_are_not_shown():
    queue = Queue()
    queue.add(Job(lambda _: None, instructions="short"))
    queue.add(job("a", stored=False))
    queue.add(job("b"))
    assert (len(queue), order(queue)) == (3, ["b"])


@pytest.mark.parametrize("held", [True, False])
def test_the_record_of_the_order_is_what_people_see(held):
    shown = queue_of("a", "b").record(held=held)
    assert isinstance(shown.record, records.QueueOrder)
    assert (shown.record.order, shown.record.held) == (["a", "b"], held)
    assert shown.shows == [events.QueueChanged(queue_of("a", "b").items(), held)]


# --- the sender -----------------------------------------------------------------------------------------------


async def test_a_sender_is_told_when_its_job_starts():
    told: list[Started] = []
    waiting = Job(told.append, answered=asyncio.get_running_loop().create_future())
    waiting.answer(Started(started=True))
    waiting.fail(CommandError(Code.BUSY, "too late"))
    assert waiting.answered is not None
    await waiting.answered
    assert told == [Started(started=True)]


async def test_a_sender_is_told_why_its_job_could_not_start():
    waiting = job("a")
    waiting.answered = asyncio.get_running_loop().create_future()
    waiting.fail(CommandError(Code.BLOCKED, "no key"))
    waiting.fail(CommandError(Code.INTERNAL, "again"))
    with pytest.raises(CommandError, match="no key"):
        await waiting.answered


async def test_a_job_that_dies_with_the_daemon_is_cancelled_for_its_sender():
    waiting = job("a")
    waiting.answered = asyncio.get_running_loop().create_future()
    waiting.fail(KeyboardInterrupt())
    with pytest.raises(asyncio.CancelledError):
        await waiting.answered


def test_a_job_whose_sender_was_answered_long_ago_answers_no_more():
    job("a").fail(CommandError(Code.BLOCKED, "no key"))


def test_every_job_is_a_run_of_its_own():
    assert job("a").run != job("a").run
