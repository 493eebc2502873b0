"""What extensions show beside a transcript, as clients hear of it and as a snapshot has it."""

import pytest

from zotd.contributions.ui_state import KEY_CHARS, MAX_NOTES, MAX_PANELS, MAX_SEGMENTS, UiState
from zotd.core.ports import SessionRow
from zotd.core.records import Note, Settings
from zotd.core.transcript import Transcript
from zotd.ledger.ledger import Ledger, Shown
from zotd.store.memory import Memory
from zotd.wire import events, ext
from zotd.wire.content import Text

TIME = "2026-11-21T20:11:18.919Z"


class Screen:
    """A client."""

    def __init__(self):
        self.shown: list[events.Event] = []

    def early(self, shown, data, seq):
        del shown, data, seq
        return False

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
        row = SessionRow("s_1", "", "/", TIME, TIME, Settings(provider="p", model="m"), "idle")
        ledger = Ledger(row, Memory(), Transcript(), addressed=addressed)
        ledger.subscribe(screen)
        return UiState(ledger)

    return board_of


@pytest.fixture
def ui_state(board_of):
    return board_of(addressed=True)


def panel(name, *lines):
    return ext.OpenPanel(ext.Panel(name, lines=lines))


def test_a_note_of_an_unknown_level_is_an_ordinary_one(ui_state, screen):
    ui_state.take("x", ext.Notify("careful", "purple"))
    assert screen.shown == ui_state.notes == [events.ExtNotify("x", "info", "careful", session="s_1")]


async def test_the_next_prompt_takes_the_notes_away_and_other_events_do_not():
    row = SessionRow("s_1", "", "/", TIME, TIME, Settings(provider="p", model="m"), "idle")
    ledger = Ledger(row, Memory(), Transcript(), addressed=True)
    ui_state = UiState(ledger)
    for _ in range(2):
        ui_state.take("x", ext.Notify("one"))
        ui_state.take("x", ext.Notify("two"))
        await ledger.write([Shown(Note(time=TIME, level="warn", text="slow"), [events.Done(run="r")])], durable=False)
        assert len(ui_state.notes) == 2
        shown = events.UserMessage([Text("go on")], TIME)
        await ledger.write([Shown(Note(time=TIME, level="info", text="new"), [shown])], durable=False)
        assert ui_state.notes == ()
    assert ledger.observers == []


def test_the_oldest_note_makes_room(ui_state):
    for number in range(MAX_NOTES + 1):
        ui_state.take("x", ext.Notify(str(number)))
    assert (ui_state.notes[0].message, len(ui_state.notes)) == ("1", MAX_NOTES)


def test_an_extension_withdraws_its_own_notes_only(ui_state, screen):
    ui_state.take("x", ext.Notify("one"))
    ui_state.take("y", ext.Notify("two"))
    ui_state.take("x", ext.ClearNotes())
    assert [note.message for note in ui_state.notes] == ["two"]
    assert screen.shown[-1] == events.ExtClearNotes("x", session="s_1")


def test_a_panel_is_drawn_anew_by_the_one_who_opened_it(ui_state):
    ui_state.take("x", panel("p", "one"))
    assert ui_state.take("y", ext.PanelRender("p", lines=("stolen",))) == 'the panel "p" is not open'
    ui_state.take("x", ext.PanelRender("p", lines=("two",)))
    assert [one.lines for one in ui_state.panels] == [["two"]]
    ui_state.take("x", ext.PanelClose("p"))
    assert ui_state.take("x", ext.PanelRender("p")) == 'the panel "p" is not open'


def test_of_two_panels_of_one_name_the_newest_is_meant(ui_state):
    ui_state.take("x", panel("p"))
    ui_state.take("y", panel("p"))
    assert (ui_state.owner("p"), ui_state.owner("q")) == ("y", None)


def test_there_is_an_end_to_panels_and_segments(ui_state):
    for number in range(MAX_PANELS):
        assert ui_state.take("x", panel(str(number))) is None
    assert ui_state.take("x", panel("more")) == f"{MAX_PANELS} panels are open in this session already"
    assert ui_state.take("x", panel("0", "drawn anew")) is None
    for number in range(MAX_SEGMENTS):
        assert ui_state.take("x", ext.SetStatus(str(number), "on")) is None
    assert "segments in the status bar already" in (ui_state.take("x", ext.SetStatus("more", "on")) or "")
    assert ui_state.take("y", ext.SetStatus("more", "on")) is None
    assert "at most" in (ui_state.take("y", ext.SetStatus("k" * (KEY_CHARS + 1), "on")) or "")


def test_an_empty_segment_is_none(ui_state, screen):
    assert ui_state.take("x", ext.SetStatus("k")) is None
    assert screen.shown == []
    ui_state.take("x", ext.SetStatus("k", "on"))
    ui_state.take("x", ext.SetStatus("k"))
    assert (ui_state.segments, [event.text for event in screen.shown]) == ([], ["on", ""])


def test_what_an_extension_leaves_behind_is_taken_away_and_its_notes_stay(ui_state, screen):
    for frame in (panel("p"), ext.SetStatus("k", "on"), ext.Notify("why")):
        ui_state.take("x", frame)
        ui_state.take("y", frame)
    ui_state.left("x")
    assert [(one.extension, one.panel_id) for one in ui_state.panels] == [("y", "p")]
    assert [one.extension for one in ui_state.segments] == ["y"]
    assert [one.extension for one in ui_state.notes] == ["x", "y"]
    ui_state.clear()
    assert (ui_state.panels, ui_state.segments, ui_state.notes) == ([], [], [])
    assert {type(event) for event in screen.shown[-3:]} == {
        events.ExtClearNotes,
        events.ExtPanelClosed,
        events.ExtStatus,
    }


def test_on_stdio_there_are_notes_and_answers_and_nothing_else(board_of, screen):
    ui_state = board_of(addressed=False)
    for frame in (panel("p"), ext.SetStatus("k", "on"), ext.Notify("careful"), ext.ClearNotes()):
        ui_state.take("x", frame)
    ui_state.display("x", "text")
    assert screen.shown == [
        events.ExtNotify("x", "info", "careful"),
        events.ExtClearNotes("x"),
        events.ExtDisplay("x", "text"),
    ]
