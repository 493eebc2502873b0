"""The cursor, against a model that knows the whole text: a list of rows."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from zottui.viewer.scrolling import At, RowPosition, Scroll

PARTS = st.lists(st.integers(0, 5), max_size=8)


class Rows:
    """A text of numbered parts, each with so many rows."""

    def __init__(self, heights):
        self.first = 100
        self.heights = list(heights)

    def parts(self):
        return len(self.heights)

    def rows(self, part):
        return self.heights[part]

    def place(self, at):
        return RowPosition(self.first + at.part, 0, at.row)

    def find(self, place):
        part = min(max(place.seq - self.first, 0), max(len(self.heights) - 1, 0))
        if not self.heights or self.first + part != place.seq:
            return At(part, 0)
        return At(part, max(min(place.line, self.heights[part] - 1), 0))

    @property
    def all(self):
        return [At(part, row) for part, height in enumerate(self.heights) for row in range(height)]


class Scrolling(RuleBasedStateMachine):
    @initialize(heights=PARTS, height=st.integers(1, 9), start=st.integers(0, 20))
    def begin(self, heights, height, start):
        self.text = Rows(heights)
        self.scroll = Scroll(self.text)
        self.scroll.height = height
        self.scroll.to(RowPosition(100 + start), 0)

    @property
    def row(self):
        """The number of the row under the cursor."""
        return self.text.all.index(self.scroll.at())

    @property
    def top(self):
        return self.text.all.index(self.scroll.shown()[0])

    def has_rows(self):
        return bool(self.text.all)

    def settle(self):
        """A cursor that was put on a part without rows is on a neighbour's, until the part has some."""
        here = self.scroll.here
        assert here is not None
        self.scroll.to(here)

    @precondition(has_rows)
    @rule(by=st.integers(-12, 12))
    def move(self, by):
        row, top = self.row, self.top
        due = min(max(row + by, 0), len(self.text.all) - 1)
        assert self.scroll.move(by) == due - row
        assert self.row == due
        if top <= due < top + self.scroll.height:
            assert self.top == top  # the screen moves only when the cursor would leave it

    @precondition(has_rows)
    @rule(by=st.integers(-12, 12))
    def page(self, by):
        row = self.row
        self.scroll.page(by)
        assert self.row == min(max(row + by, 0), len(self.text.all) - 1)

    @precondition(has_rows)
    @rule(by=st.integers(-12, 12))
    def wheel(self, by):
        row, top, height = self.row, self.top, self.scroll.height
        self.scroll.wheel(by)
        due = min(max(top + by, 0), max(len(self.text.all) - height, 0))
        assert self.top == due
        assert self.row == min(max(row, due), due + height - 1)

    @precondition(has_rows)
    @rule(heights=PARTS)
    def prepend(self, heights):
        self.settle()
        place, above = self.scroll.here, self.row - self.top
        top = self.top
        self.text.heights[:0] = heights
        self.text.first -= len(heights)
        assert self.scroll.here == place
        if top > 0:
            assert self.row - self.top == above  # what is on the screen stays where it is

    @precondition(has_rows)
    @rule(heights=PARTS)
    def append(self, heights):
        self.settle()
        place = self.scroll.here
        self.text.heights += heights
        assert self.scroll.here == place

    @precondition(has_rows)
    @rule(part=st.integers(0, 7), height=st.integers(1, 9))
    def open_or_fold(self, part, height):
        self.settle()
        at = self.scroll.at()
        assert at is not None
        part = min(part, len(self.text.heights) - 1)
        self.text.heights[part] = height
        if part != at.part:
            assert self.scroll.at() == at
        else:
            assert self.scroll.at() == At(part, min(at.row, height - 1))

    @rule(height=st.integers(1, 9))
    def resize(self, height):
        here = self.scroll.here
        self.scroll.height = height
        assert self.scroll.here == here

    @invariant()
    def the_screen_is_full_of_neighbours_around_the_cursor(self):
        if not hasattr(self, "text"):
            return
        shown, rows = self.scroll.shown(), self.text.all
        assert len(shown) == min(self.scroll.height, len(rows))
        if shown:
            start = rows.index(shown[0])
            assert rows[start : start + len(shown)] == shown
            assert self.scroll.at() in shown
            assert self.scroll.is_at_end() == (self.scroll.at() == rows[-1])


def test_the_cursor_is_where_it_was_whatever_happens_to_the_text():
    thorough = settings(max_examples=100, stateful_step_count=20, deadline=None, report_multiple_bugs=False)
    run_state_machine_as_test(Scrolling, settings=thorough)
