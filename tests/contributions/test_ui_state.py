"""What extensions show beside a transcript, as clients hear of it and as a snapshot has it."""

import pytest

from zotd.contributions.ui_state import KEY_CHARS, MAX_NOTES, MAX_PANELS, MAX_SEGMENTS, Board
from zotd.core.ports import Row
from zotd.core.records import Settings
from zotd.core.transcript import Transcript
from zotd.ledger.ledger import Ledger
from zotd.store.memory import Memory
from zotd.wire import events, ext

TIME = "2026-11-21T20:11:18.919Z"


class Screen:
    """A client."""

    def __init__(self):
        self.shown: list[events.Event] = []

    def committed(self, shown, data, last_seq):
        del shown, data, last_seq

    def live(self, shown, data):
        del data
        self.shown += shown


@pytest.fixture
def screen():
    return Screen()


@pytest.fixture
def board_of(screen):
    """`board_of(addressed)`: of a session in the daemon, or on stdio."""

    def board_of(*, addressed):
        row = Row("s_1", "", "/", TIME, TIME, Settings(provider="p", model="m"), "idle")
        ledger = Ledger(row, Memory(), Transcript(), addressed=addressed)
        ledger.subscribe(screen)
        return Board(ledger)

    return board_of


@pytest.fixture
def board(board_of):
    return board_of(addressed=True)


def panel(name, *lines):
    return ext.OpenPanel(ext.Panel(name, lines=lines))


def test_a_note_of_an_unknown_level_is_an_ordinary_one(board, screen):
    board.take("x", ext.Notify("careful", "purple"))
    assert screen.shown == board.notes == [events.ExtNotify("x", "info", "careful", session="s_1")]


def test_the_oldest_note_makes_room(board):
    for number in range(MAX_NOTES + 1):
        board.take("x", ext.Notify(str(number)))
    assert (board.notes[0].message, len(board.notes)) == ("1", MAX_NOTES)


def test_an_extension_withdraws_its_own_notes_only(board, screen):
    board.take("x", ext.Notify("one"))
    board.take("y", ext.Notify("two"))
    board.take("x", ext.ClearNotes())
    assert [note.message for note in board.notes] == ["two"]
    assert screen.shown[-1] == events.ExtClearNotes("x", session="s_1")


def test_a_panel_is_drawn_anew_by_the_one_who_opened_it(board):
    board.take("x", panel("p", "one"))
    assert board.take("y", ext.PanelRender("p", lines=("stolen",))) == 'the panel "p" is not open'
    board.take("x", ext.PanelRender("p", lines=("two",)))
    assert [one.lines for one in board.panels] == [["two"]]
    board.take("x", ext.PanelClose("p"))
    assert board.take("x", ext.PanelRender("p")) == 'the panel "p" is not open'


def test_of_two_panels_of_one_name_the_newest_is_meant(board):
    board.take("x", panel("p"))
    board.take("y", panel("p"))
    assert (board.owner("p"), board.owner("q")) == ("y", None)


def test_there_is_an_end_to_panels_and_segments(board):
    for number in range(MAX_PANELS):
        assert board.take("x", panel(str(number))) is None
    assert board.take("x", panel("more")) == f"{MAX_PANELS} panels are open in this session already"
    assert board.take("x", panel("0", "drawn anew")) is None
    for number in range(MAX_SEGMENTS):
        assert board.take("x", ext.SetStatus(str(number), "on")) is None
    assert "segments in the status bar already" in (board.take("x", ext.SetStatus("more", "on")) or "")
    assert board.take("y", ext.SetStatus("more", "on")) is None
    assert "at most" in (board.take("y", ext.SetStatus("k" * (KEY_CHARS + 1), "on")) or "")


def test_an_empty_segment_is_none(board, screen):
    assert board.take("x", ext.SetStatus("k")) is None
    assert screen.shown == []
    board.take("x", ext.SetStatus("k", "on"))
    board.take("x", ext.SetStatus("k"))
    assert (board.segments, [event.text for event in screen.shown]) == ([], ["on", ""])


def test_what_an_extension_leaves_behind_is_taken_away_and_its_notes_stay(board, screen):
    for frame in (panel("p"), ext.SetStatus("k", "on"), ext.Notify("why")):
        board.take("x", frame)
        board.take("y", frame)
    board.left("x")
    assert [(one.extension, one.panel_id) for one in board.panels] == [("y", "p")]
    assert [one.extension for one in board.segments] == ["y"]
    assert [one.extension for one in board.notes] == ["x", "y"]
    board.clear()
    assert (board.panels, board.segments, board.notes) == ([], [], [])
    assert {type(event) for event in screen.shown[-3:]} == {
        events.ExtClearNotes,
        events.ExtPanelClosed,
        events.ExtStatus,
    }


def test_on_stdio_there_are_notes_and_answers_and_nothing_else(board_of, screen):
    board = board_of(addressed=False)
    for frame in (panel("p"), ext.SetStatus("k", "on"), ext.Notify("careful"), ext.ClearNotes()):
        board.take("x", frame)
    board.display("x", "text")
    assert screen.shown == [
        events.ExtNotify("x", "info", "careful"),
        events.ExtClearNotes("x"),
        events.ExtDisplay("x", "text"),
    ]
