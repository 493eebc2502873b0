"""What comes in from the terminal: the answer to a question, and keys, with its reports between them."""

import os
import pty
import select
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.input.typeahead import get_typeahead
from prompt_toolkit.keys import Keys

from zottui.terminal.background import Question
from zottui.terminal.early import cbreak
from zottui.terminal.keyboard import Keyboard, Pastes, Reports

XTERM = {"TERM": "xterm-256color"}


@contextmanager
def wire():
    """(what the person and the terminal have in their hands, what the program has)."""
    ours, theirs = pty.openpty()
    restore = cbreak(theirs)
    try:
        yield ours, theirs
    finally:
        restore()
        os.close(ours)
        os.close(theirs)


# --- the question -----------------------------------------------------------------------------------------------------

DEVICE = b"\x1b[?62;4c"


def asked(said):
    """What the answer is when this comes in."""
    with wire() as (ours, theirs):
        question = Question(XTERM, keyboard=theirs, screen=theirs)
        question.ask()
        assert os.read(ours, 100) == b"\x1b]11;?\x1b\\\x1b[c"
        os.write(ours, said)
        answer = question.answer()
        question.drain()
        return answer


@pytest.mark.parametrize(
    ("colour", "is_dark"),
    [
        (b"rgb:ffff/ffff/ffff", False),
        (b"rgb:0000/0000/0000", True),
        (b"rgb:f/f/f", False),
        (b"rgb:1e/1e/2e", True),
        (b"rgba:fd00/f600/e300/ffff", False),
    ],
)
@pytest.mark.parametrize("end", [b"\x07", b"\x1b\\"])
def test_a_background_is_light_or_dark(colour, is_dark, end):
    assert asked(b"\x1b]11;" + colour + end + DEVICE).is_dark is is_dark


def test_a_terminal_that_does_not_tell_its_background_is_not_waited_for():
    assert asked(DEVICE).is_dark is None


def test_keys_that_are_typed_before_and_between_the_answers_are_kept():
    answer = asked(b"go \x1b]11;rgb:00/00/00\x07on \x1b[A" + DEVICE)
    assert answer.typed == b"go on \x1b[A"
    assert answer.is_dark


def test_of_an_answer_that_does_not_come_nothing_is_lost_but_the_colour():
    with wire() as (ours, theirs):
        question = Question(XTERM, keyboard=theirs, screen=theirs)
        question.ask()
        os.write(ours, b"typed\x1b]11;rgb:00")
        answer = question.answer()
        assert answer.is_dark is None
        assert answer.typed == b"typed\x1b]11;rgb:00"
        with keyboard(theirs, typed=answer.typed) as (keys, _):
            assert [key.data for key in get_typeahead(keys)] == list("typed")
            assert [key.data for key in read(keys, ours, b"00/0000/0000\x1b\\" + DEVICE + b"!")] == ["!"]


def test_the_end_waits_for_an_answer_that_is_late():
    with wire() as (ours, theirs):
        question = Question(XTERM, keyboard=theirs, screen=theirs)
        question.ask()
        question.answer()
        os.write(ours, b"\x1b]11;rgb:00/00/00\x07" + DEVICE)
        question.drain()
        os.set_blocking(theirs, False)
        with pytest.raises(BlockingIOError):
            os.read(theirs, 1)


@pytest.mark.parametrize("env", [{"TERM": "dumb"}, {"TERM": "linux"}, {}])
def test_a_terminal_that_would_show_the_question_is_not_asked(env):
    with wire() as (ours, theirs):
        question = Question(env, keyboard=theirs, screen=theirs)
        question.ask()
        assert question.answer().typed == b""
        os.set_blocking(ours, False)
        with pytest.raises(BlockingIOError):
            os.read(ours, 1)


def test_no_query_is_sent_to_a_pipe():
    inside, outside = os.pipe()
    question = Question(XTERM, keyboard=inside, screen=outside)
    question.ask()
    assert question.answer().is_dark is None
    os.close(inside)
    os.close(outside)
    cbreak(inside)()  # and neither changed


# --- the keyboard -----------------------------------------------------------------------------------------------------


@contextmanager
def keyboard(fd, typed=b""):
    focus: list[bool] = []
    with os.fdopen(os.dup(fd), encoding="utf-8") as stdin:
        yield Keyboard(stdin, on_focus=focus.append, typed=typed), focus


def keys_of(sent):
    """The keys that come of these bytes, and what was said about the focus."""
    with wire() as (ours, theirs), keyboard(theirs) as (keys, focus):
        return [key.key for key in read(keys, ours, sent) + keys.flush_keys()], focus


def read(keys, ours, sent):
    """The keys at once, when these bytes have come through."""
    os.write(ours, sent)
    assert select.select([keys], [], [], 5)[0]
    return keys.read_keys()


@pytest.mark.parametrize("sent", [b"\x1b[13;2u", b"\x1b[27;2;13~", b"\x1b\r"])
def test_shift_enter_in_both_forms_is_alt_enter(sent):
    assert keys_of(sent) == ([Keys.Escape, Keys.ControlM], [])


def test_the_focus_is_reported_beside_the_keys():
    assert keys_of(b"a\x1b[Ob\x1b[I") == (["a", "b"], [False, True])


@pytest.mark.parametrize(
    "answer",
    [
        b"\x1b]11;rgb:0000/0000/0000\x1b\\",
        b"\x1b]11;rgb:0000/0000/0000\x07",
        b"\x1b]52;c;eHh4\x07",
        b"\x1b[?62;4c",
        b"\x1b[>0;276;0c",
        b"\x1b[?2026;2$y",
        b"\x1b[?997;1n",
        b"\x1bP>|tmux 3.4\x1b\\",
    ],
)
def test_a_late_answer_is_not_typed(answer):
    assert keys_of(b"a" + answer + b"b") == (["a", "b"], [])


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        (b"\x1b", [Keys.Escape, Keys.Ignore]),  # which ends the wait for what Escape might begin
        (b"\x1b]", [Keys.Escape, "]"]),
        (b"\x1bP", [Keys.Escape, "P"]),
        (b"\x1b[", [Keys.Escape, "["]),
        (b"\x1b[A", [Keys.Up]),
        (b"\x1b[1;5C", [Keys.ControlRight]),
        (b"\x1bOP", [Keys.F1]),
        (b"\x1b[24~", [Keys.F12]),
        (b"\x1b[200~a\x1b[Zb\x1b[201~", [Keys.BracketedPaste]),
        (b"\x1b]hello", [Keys.Escape, *"]hello"]),
        ("é漢".encode(), ["é", "漢"]),
    ],
)
def test_keys_are_what_they_were(sent, keys):
    assert keys_of(sent) == (keys, [])


PIECES = st.lists(
    st.sampled_from(
        [
            *("a", "é", "\r", "\x1b[A", "\x1b[1;5C", "\x1b[27;5;9~", "\x1b[13~", "\x1b[200~x\x1b[201~", "\x1bx"),
            *(
                "\x1b[I",
                "\x1b[O",
                "\x1b[13;2u",
                "\x1b[27;2;13~",
                "\x1b[?1;2c",
                "\x1b]11;rgb:0/0/0\x07",
                "\x1bP>|v\x1b\\",
            ),
        ]
    ),
    max_size=12,
)


@given(PIECES, st.lists(st.integers(1, 8)))
def test_however_the_input_is_cut_the_same_was_typed(pieces, cuts):
    whole: list[bool] = []
    in_pieces: list[bool] = []
    text = "".join(pieces)
    once = Reports(whole.append)
    expected = once.feed(text) + once.flush()
    reports, typed, rest = Reports(in_pieces.append), "", text
    for cut in cuts:
        typed, rest = typed + reports.feed(rest[:cut]), rest[cut:]
    assert typed + reports.feed(rest) + reports.flush() == expected
    assert in_pieces == whole == [piece == "\x1b[I" for piece in pieces if piece in {"\x1b[I", "\x1b[O"}]


@given(st.text(alphabet="\x1b[]P?>;:1273cnuIO~\x07\\$y a", max_size=40))
def test_nothing_that_is_typed_is_lost_but_reports(text):
    reports = Reports(lambda _: None)
    typed = reports.feed(text) + reports.flush()
    if "\x1b" not in text:
        assert typed == text
    assert len(typed) <= len(text)


@given(st.lists(st.sampled_from(["a", "\x1b[200~", "\x1b[201~", "\x1b", "[20", "1~", "é"]), max_size=20), st.data())
def test_a_paste_comes_whole_and_nothing_of_it_is_lost(pieces, data):
    sent = "".join(pieces)
    pastes, got, rest = Pastes(), [], sent
    while rest:
        cut = data.draw(st.integers(1, len(rest)))
        got.append(pastes.feed(rest[:cut]))
        rest = rest[cut:]
    came = "".join(got)
    assert sent.startswith(came)
    assert came == sent or "\x1b[200~" in sent[len(came) :]
