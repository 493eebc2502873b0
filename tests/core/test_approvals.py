"""Approvals by example; `test_approvals_in_any_order` checks all orders."""

import pytest

from zotd.core.approvals import KEPT, ApprovalResolution, ApprovalTable, Lost, Stale, UnknownQuestion, Won

ANN = ApprovalResolution("allow", "ann")
BEN = ApprovalResolution("deny", "ben", reason="no")


@pytest.fixture
def questions():
    questions = ApprovalTable()
    questions.request("a_1", "d1")
    return questions


def test_the_first_decision_wins_and_later_ones_are_told_so(questions):
    assert questions.decide("a_1", "d1", ANN) == Won()
    assert questions.decide("a_1", "d1", BEN) == Lost(ANN)
    assert questions.decide("a_1", "other", BEN) == Lost(ANN)
    assert questions.pending == []


def test_a_decision_about_other_arguments_is_stale_and_changes_nothing(questions):
    assert questions.decide("a_1", "d2", ANN) == Stale()
    assert questions.pending == ["a_1"]


def test_a_decision_on_an_unknown_id_is_reported_as_unknown(questions):
    assert questions.decide("a_2", "d1", ANN) == UnknownQuestion()


def test_an_ended_approval_cannot_be_decided_and_gives_the_reason(questions):
    over = ApprovalResolution("cancelled", "", reason="the call was aborted")
    assert questions.end("a_1", over)
    assert not questions.end("a_1", over)
    assert questions.decide("a_1", "d1", ANN) == Lost(over)
    assert over.sentence == "it is no longer pending: the call was aborted"
    assert (ANN.sentence, BEN.sentence) == ("ann has allowed it already", "ben has denied it already")


def test_an_approval_is_overdue_from_its_deadline_on(questions):
    questions.request("a_2", "d", expires=10.0)
    assert questions.overdue(9.9) == []
    assert questions.overdue(10.0) == ["a_2"]
    assert questions.overdue(1e12) == ["a_2"]


def test_requesting_a_known_id_again_changes_nothing(questions):
    questions.request("a_1", "d2")
    assert questions.decide("a_1", "d1", ANN) == Won()
    questions.request("a_1", "d1")
    assert questions.pending == []


def test_only_the_newest_resolutions_are_remembered():
    questions = ApprovalTable()
    for number in range(KEPT + 1):
        questions.request(f"a_{number}", "d")
        questions.decide(f"a_{number}", "d", ANN)
    assert questions.decide("a_0", "d", BEN) == UnknownQuestion()
    assert questions.decide("a_1", "d", BEN) == Lost(ANN)


def test_a_resolution_from_before_a_restart_counts(questions):
    questions.resolved("a_0", BEN)
    assert questions.decide("a_0", "d", ANN) == Lost(BEN)
