"""Undo and redo of runs, and of everything since a message."""

import pytest

from zotd.checkpoints.errors import ChangedSinceError, CheckpointError, UnclearRunError
from zotd.checkpoints.outcome import WhenChanged, WhyKept

S = "s_1"


def run(place, name, changes, *, session=S, seq=0, ends=True):
    """A run that writes these files; None removes one."""
    place.record(kind="step", session=session, run=name, seq=seq)
    for path, content in changes.items():
        if content is None:
            (place.work / path).unlink()
        else:
            place.write(path, content)
    if ends:
        place.record(kind="end", session=session, run=name, seq=seq)


def texts(place):
    return {path: content.decode() for path, (_, content) in place.files().items()}


def test_undo_takes_back_one_run_after_the_other_and_redo_makes_them_again(place):
    states = [texts(place)]
    for name, changes in (("r1", {"a": "1"}), ("r2", {"a": "2", "b": "2"}), ("r3", {"a": None})):
        run(place, name, changes)
        states.append(texts(place))
    for state in reversed(states[:-1]):
        place.checkpoints().undo(S)
        assert texts(place) == state
    with pytest.raises(CheckpointError, match="nothing to undo"):
        place.checkpoints().undo(S)
    for state in states[1:]:
        place.checkpoints().redo(S)
        assert texts(place) == state
    with pytest.raises(CheckpointError, match="nothing to redo"):
        place.checkpoints().redo(S)


def test_undo_names_the_files(place):
    run(place, "r1", {"a": "1", "b": "1"})
    assert place.checkpoints().undo(S).paths == ["a", "b"]


def test_undo_leaves_alone_what_the_user_did_before_and_after(place):
    place.write("mine", "before")
    run(place, "r1", {"a": "1", "b": "1"})
    place.write("mine", "after")
    place.write("b", "the user's")
    done = place.checkpoints().undo(S)
    assert texts(place) == {"mine": "after", "b": "the user's"}
    assert [(one.path, one.why) for one in done.kept] == [("b", WhyKept.CHANGED)]


def test_undo_of_what_the_user_changed_between_two_runs_leaves_it(place):
    run(place, "r1", {"a": "1"})
    place.write("a", "the user's")
    run(place, "r2", {"b": "2"})
    place.checkpoints().undo(S)
    done = place.checkpoints().undo(S)
    assert texts(place) == {"a": "the user's"}
    assert [one.path for one in done.kept] == ["a"]


def test_a_forced_undo_takes_back_the_users_change_too_and_can_be_undone(place):
    place.write("a", "0")
    run(place, "r1", {"a": "1"})
    place.write("a", "the user's")
    done = place.checkpoints().undo(S, when_changed=WhenChanged.OVERWRITE)
    assert texts(place) == {"a": "0"}
    place.checkpoints().restore(done.before)
    assert texts(place) == {"a": "the user's"}


def test_a_run_that_changed_nothing_is_passed_over(place):
    run(place, "r1", {"a": "1"})
    run(place, "r2", {})
    assert place.checkpoints().undo(S).paths == ["a"]


def test_a_new_run_ends_what_can_be_redone(place):
    run(place, "r1", {"a": "1"})
    place.checkpoints().undo(S)
    run(place, "r2", {"b": "2"})
    with pytest.raises(CheckpointError, match="nothing to redo"):
        place.checkpoints().redo(S)


def test_a_run_that_was_cut_is_undone_as_far_as_it_came(place):
    run(place, "r1", {"a": "1"}, ends=False)
    place.checkpoints().undo(S, when_changed=WhenChanged.OVERWRITE)
    assert texts(place) == {}
    place.checkpoints().redo(S)
    assert texts(place) == {"a": "1"}


@pytest.mark.parametrize("when_changed", [WhenChanged.REFUSE, WhenChanged.KEEP])
def test_a_run_that_was_cut_is_not_undone_unasked_because_later_changes_look_like_its_own(place, when_changed):
    place.write("mine", "0")
    run(place, "r1", {"a": "1"}, ends=False)
    place.write("mine", "the user's")
    with pytest.raises(UnclearRunError, match="a, mine"):
        place.checkpoints().undo(S, when_changed=when_changed)
    place.record()
    with pytest.raises(UnclearRunError, match="a, mine"):
        place.checkpoints().undo_after(S, -1, when_changed=when_changed)
    assert texts(place) == {"a": "1", "mine": "the user's"}


def test_each_session_undoes_its_own_runs(place):
    run(place, "r1", {"a": "1"})
    run(place, "r2", {"b": "2"}, session="s_2")
    place.checkpoints().undo(S)
    assert texts(place) == {"b": "2"}


def test_a_rewind_undoes_all_runs_behind_a_message(place):
    for number in (1, 2, 3):
        run(place, f"r{number}", {"a": str(number), f"only{number}": "x"}, seq=number * 10)
    done = place.checkpoints().undo_after(S, 15)
    assert texts(place) == {"a": "1", "only1": "x"}
    assert [one.paths for one in done] == [["a", "only3"], ["a", "only2"]]
    assert place.checkpoints().undo_after(S, 15) == []
    place.checkpoints().redo(S)
    assert texts(place) == {"a": "2", "only1": "x", "only2": "x"}


def test_an_undo_that_refuses_names_what_the_user_changed_and_changes_nothing(place):
    place.write("a", "0")
    run(place, "r1", {"a": "1", "b": "1"})
    place.write("a", "the user's")
    before = texts(place)
    with pytest.raises(ChangedSinceError) as refused:
        place.checkpoints().undo(S, when_changed=WhenChanged.REFUSE)
    assert refused.value.paths == ["a"]
    assert texts(place) == before
    assert place.checkpoints().undo(S, when_changed=WhenChanged.KEEP).paths == ["b"]


def test_an_undo_that_refuses_does_not_mind_changes_of_other_files(place):
    run(place, "r1", {"a": "1"})
    place.write("mine", "x")
    place.checkpoints().undo(S, when_changed=WhenChanged.REFUSE)
    assert texts(place) == {"mine": "x"}
    place.write("a", "the user's")
    with pytest.raises(ChangedSinceError, match="a changed since"):
        place.checkpoints().redo(S, when_changed=WhenChanged.REFUSE)
    (place.work / "a").unlink()
    place.checkpoints().redo(S, when_changed=WhenChanged.REFUSE)
    assert texts(place) == {"mine": "x", "a": "1"}


def test_a_rewind_that_refuses_undoes_no_run_if_the_user_changed_a_file_between_two(place):
    run(place, "r1", {"a": "1"}, seq=10)
    place.write("a", "the user's")
    run(place, "r2", {"b": "2"}, seq=20)
    with pytest.raises(ChangedSinceError, match="a changed since"):
        place.checkpoints().undo_after(S, 5, when_changed=WhenChanged.REFUSE)
    assert texts(place) == {"a": "the user's", "b": "2"}
    place.checkpoints().undo_after(S, 15, when_changed=WhenChanged.REFUSE)
    assert texts(place) == {"a": "the user's"}


def test_a_rewind_into_the_middle_of_a_run_is_refused(place):
    place.record(kind="step", session=S, run="r1", seq=10)
    place.write("a", "1")
    place.record(kind="end", session=S, run="r1", seq=20)
    with pytest.raises(CheckpointError, match="message 15 is in the middle of a run"):
        place.checkpoints().undo_after(S, 15)


def test_a_step_that_found_nothing_changed_has_no_checkpoint_of_its_own(place):
    place.record(kind="step", session=S, run="r1", seq=10)
    place.record(kind="step", session=S, run="r1", seq=12)
    place.write("a", "1")
    place.record(kind="step", session=S, run="r1", seq=14)
    place.record(kind="step", session=S, run="r1", seq=16)
    place.record(kind="end", session=S, run="r1", seq=18)
    assert [one.seq for one in place.checkpoints().all()] == [18, 14, 10]
    place.checkpoints().undo(S)
    assert texts(place) == {}


def test_a_step_behind_one_of_another_session_has_a_checkpoint_though_nothing_has_changed(place):
    place.record(kind="step", session=S, run="r1", seq=10)
    place.record(kind="step", session="s_2", run="r2", seq=10)
    place.record(kind="step", session=S, run="r1", seq=12)
    place.write("a", "1")
    run(place, "r3", {"b": "1"}, session="s_2", seq=20)
    place.checkpoints().undo(S, when_changed=WhenChanged.OVERWRITE)
    assert texts(place) == {"b": "1"}
