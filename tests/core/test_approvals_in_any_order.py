"""Property test: approvals that are decided late, twice, wrongly and out of order."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from zotd.core.approvals import KEPT, ApprovalResolution, ApprovalTable, Lost, Stale, UnknownQuestion, Won

keys = st.integers(0, 30).map("a_{}".format)
digests = st.sampled_from(["d1", "d2"])
people = st.builds(ApprovalResolution, st.sampled_from(["allow", "deny"]), st.sampled_from(["ann", "ben"]))
OVER = ApprovalResolution("cancelled", "", reason="over")


class Books(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.questions = ApprovalTable()
        self.pending: dict[str, tuple[str, float | None]] = {}
        self.resolved: dict[str, ApprovalResolution] = {}
        self.asked: set[str] = set()

    def settle(self, key, resolution):
        del self.pending[key]
        self.resolved[key] = resolution

    @rule(key=keys, digest=digests, expires=st.none() | st.floats(0, 100))
    def request(self, key, digest, expires):
        self.questions.request(key, digest, expires=expires)
        if key not in self.resolved and key not in self.pending:
            self.pending[key] = digest, expires
            self.asked.add(key)

    @rule(key=keys, digest=digests, resolution=people)
    def decide(self, key, digest, resolution):
        outcome = self.questions.decide(key, digest, resolution)
        if key in self.resolved:
            assert outcome == Lost(self.resolved[key])
        elif key not in self.pending:
            assert outcome == UnknownQuestion()
        elif self.pending[key][0] != digest:
            assert outcome == Stale()
        else:
            assert outcome == Won()
            self.settle(key, resolution)

    @rule(key=keys)
    def cancel(self, key):
        assert self.questions.end(key, OVER) == (key in self.pending)
        if key in self.pending:
            self.settle(key, OVER)

    @rule()
    def cancel_all(self):
        for key in self.questions.pending:
            assert self.questions.end(key, OVER)
            self.settle(key, OVER)
        assert not self.pending

    @rule(now=st.floats(0, 100))
    def time_passes(self, now):
        due = [key for key, (_, expires) in self.pending.items() if expires is not None and expires <= now]
        assert self.questions.overdue(now) == due
        for key in due:
            assert self.questions.end(key, OVER)
            self.settle(key, OVER)

    @rule(key=keys, resolution=people)
    def resolve_before_a_restart(self, key, resolution):
        if key not in self.asked:
            self.questions.resolved(key, resolution)
            self.resolved.setdefault(key, resolution)

    @invariant()
    def pending_ids_match_the_model(self):
        assert self.questions.pending == list(self.pending)


def test_exactly_one_decision_wins_in_any_order():
    assert KEPT > 31, "else the books would have to forget, too"
    run_state_machine_as_test(Books)
