"""Which events belong to one input, for typed events and for dicts."""

import msgspec
import pytest

from zotd.client.errors import RunFailedError
from zotd.client.runs import Run, of_run
from zotd.client.selection import select
from zotd.wire import events


def user(key, run):
    return events.UserMessage([], "t", session="s", seq=1, input=key, run=run)


def queue(*keys, held=False):
    return events.QueueChanged([events.QueueItem(key, "", "", "queue") for key in keys], held, session="s", seq=1)


def delta(words):
    return events.TextDelta(words, session="s")


def done(run):
    return events.Done(session="s", seq=1, run=run)


def typed(run, stream):
    return [event for batch in stream for event in select(run, batch)]


def as_dicts(run, stream):
    frames = [(b"", msgspec.to_builtins(event)) for batch in stream for event in batch]
    return [msgspec.convert(frame, events.AnyEvent) for _, frame in of_run(run, "s", frames)]


both = pytest.mark.parametrize("pick", [typed, as_dicts])


@both
def test_events_before_the_start_and_after_the_end_do_not_belong_to_the_run(pick):
    before = [delta("other"), done("r_1")]
    mine = [user("i_2", "r_2"), delta("mine"), done("r_2")]
    after = [delta("later"), done("r_3")]
    run = Run("i_2", None)
    assert pick(run, [[*before, *mine, *after]]) == mine
    assert run.over


@both
def test_another_runs_done_does_not_end_ours(pick):
    run = Run("i_2", "r_2")
    mine = [user("i_2", "r_2"), done("r_1"), delta("mine"), done("r_2")]
    assert pick(run, [mine[:2], mine[2:]]) == mine


@both
def test_a_run_that_fails_before_its_first_message_ends_with_its_done(pick):
    run = Run("i_1", "r_1")
    assert pick(run, [[delta("other"), done("r_1")]]) == [done("r_1")]


@both
@pytest.mark.parametrize("flip", [False, True])
def test_an_input_that_starts_is_not_withdrawn(pick, flip):
    first = [queue(), user("i_1", "r_1")]
    stream = [queue("i_1"), *(first[::-1] if flip else first), done("r_1")]
    assert pick(Run("i_1", None), [stream])[-1] == done("r_1")


@both
def test_an_input_missing_from_a_held_queue_was_withdrawn(pick):
    with pytest.raises(RunFailedError, match="withdrawn"):
        pick(Run("i_1", None), [[queue("i_1"), queue("i_2", held=True)]])


@both
def test_an_input_in_a_held_queue_is_reported_as_held(pick):
    with pytest.raises(RunFailedError, match="zotctl continue"):
        pick(Run("i_1", None), [[queue("i_1"), queue("i_1", "i_2", held=True)]])


@both
def test_a_held_queue_does_not_affect_a_running_input(pick):
    assert pick(Run("i_1", None), [[user("i_1", "r_1"), queue("i_2", held=True), done("r_1")]])[-1] == done("r_1")


@both
@pytest.mark.parametrize("next_one", [user("i_2", "r_2"), done("r_0"), events.TurnEnd("end_turn", session="s", seq=9)])
def test_an_input_that_leaves_the_queue_without_starting_was_withdrawn(pick, next_one):
    with pytest.raises(RunFailedError, match="withdrawn"):
        pick(Run("i_1", None), [[queue("i_1"), queue(), delta("live events say nothing"), next_one]])


@both
def test_a_compaction_starts_at_once(pick):
    run = Run(None, "r_1", starts_now=True)
    stream = [events.CompactDone("all", session="s", seq=1), done("r_1")]
    assert pick(run, [[*stream, done("r_2")]]) == stream
