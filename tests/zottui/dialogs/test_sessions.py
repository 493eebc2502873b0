"""Choosing among sessions, and seeing what all of them do."""

import asyncio

import pytest
from msgspec import structs

from tests.zottui.widgets.states import EVIL, SESSION, question
from zotd.client.errors import CallError
from zotd.wire import api, events, reports
from zotd.wire.content import Message, Text, ToolCall, ToolResult
from zotd.wire.events import ApprovalRequested
from zotd.wire.families import SessionParent
from zottui.dialogs.overview import Overview, newest_line
from zottui.dialogs.picker import Picker
from zottui.dialogs.watching import Watching

NOW = 1_767_225_600.0
"""2026-01-01, 00:00 UTC."""

HERE = structs.replace(SESSION, updated="2025-12-31T23:57:00.000Z")
WAITS = structs.replace(
    HERE, id="s_2", name="docs 日本", cwd="/home/me/p", state="waiting", updated="2025-12-31T22:00:00.000Z"
)
IDLE = structs.replace(HERE, id="s_3", name="", cwd="/srv/other", state="idle", updated="2025-12-29T00:00:00.000Z")
FAILED = structs.replace(HERE, id="s_4", name="broken", cwd="/srv/other", state="blocked")


def answering(fake_ui, *infos, questions=(), line="the newest line"):
    """Have these sessions."""

    def listed(params):
        return api.Sessions([info for info in infos if params.cwd in {None, info.cwd}])

    fake_ui.answers |= {
        api.SessionList: listed,
        api.UsageReport: reports.UsageSums([reports.UsageSum("s_2", cost_usd=0.42)]),
        api.ApprovalScope: lambda _: api.Approvals(list(questions)),
        api.History: lambda _: api.HistoryPage([Message("assistant", [Text(line)], "")], has_more=False),
    }


async def opened(fake_ui, dialog, *infos, **options):
    answering(fake_ui, *infos, **options)
    shown = dialog(fake_ui, lambda: NOW)
    fake_ui.open(shown)
    await fake_ui.turn()
    fake_ui.screen()
    await fake_ui.turn()
    return shown


BELOW = structs.replace(HERE, id="s_5", name="finds the docs", parent=SessionParent("s_2", "c_1"))
LOST = structs.replace(HERE, id="s_6", name="of an old session", parent=SessionParent("s_old", "c_2"))


async def test_subagents_stand_below_their_parents(fake_ui):
    await opened(fake_ui, Picker, LOST, BELOW, HERE, WAITS)
    await fake_ui.press("tab")
    lines = fake_ui.screen().splitlines()
    names = [line for line in lines if "docs" in line or "fix the tests" in line]
    assert ["└ finds the docs" in line for line in names] == [False, False, True]
    assert not any("of an old session" in line for line in lines)


# --- the picker ---------------------------------------------------------------------------------------------------------

WIDE = """\
sessions  in all directories
  working    fix the tests (here)  3m         ~/src/p
> needs you  docs 日本             2h  $0.42  ~/p
  idle       s_3                   3d         /srv/other
  failed     broken                3m         /srv/other
"""

ALL = {
    20: """\
sessions  in all di…
  working    fix th…
> needs you  docs …
  idle       s_3
  failed     broken
enter open
tab all directories
ctrl+n new""",
    40: """\
sessions  in all directories
  working    fix the tests (here)  3m
> needs you  docs 日本             2h
  idle       s_3                   3d
  failed     broken                3m
enter open  tab all directories
ctrl+n new  ctrl+r rename  ctrl+d delete
esc close""",
    80: f"{WIDE}enter open  tab all directories  ctrl+n new  ctrl+r rename  ctrl+d delete\nesc close",
    140: f"{WIDE}enter open  tab all directories  ctrl+n new  ctrl+r rename  ctrl+d delete  esc close",
}
"""What the picker looks like, by width."""


@pytest.mark.parametrize("width", ALL)
async def test_all_sessions_are_listed_with_their_states_in_words(fake_ui, width):
    await opened(fake_ui, Picker, HERE, WAITS, IDLE, FAILED)
    await fake_ui.press("tab")
    assert fake_ui.screen(width) == ALL[width]


async def test_first_only_those_of_this_directory_are_listed(fake_ui):
    await opened(fake_ui, Picker, HERE, WAITS, IDLE)
    assert fake_ui.screen().splitlines()[:2] == ["sessions  in ~/p", "> needs you  docs 日本  2h  $0.42"]
    assert "s_3" not in fake_ui.screen()


async def test_the_user_of_a_session_stands_before_its_directory(fake_ui):
    await opened(fake_ui, Picker, HERE, structs.replace(WAITS, user="channel:x:\x1b[2J"))
    assert fake_ui.screen().splitlines()[1].startswith("> needs you  docs 日本  2h  $0.42  channel:x:")
    assert "\x1b[2J" not in fake_ui.screen()
    await fake_ui.press("tab")
    assert "~/p" in fake_ui.screen(100).splitlines()[2]


async def test_enter_goes_to_the_session_that_was_filtered(fake_ui):
    await opened(fake_ui, Picker, HERE, WAITS, IDLE)
    await fake_ui.press("tab", *"need", "enter")
    assert fake_ui.switched == ["s_2"]
    assert fake_ui.dialogs == []


async def test_a_list_that_is_wanted_while_another_is_asked_for_comes_next(fake_ui):
    answering(fake_ui, WAITS, IDLE)
    fake_ui.open(Picker(fake_ui, lambda: NOW))
    await asyncio.sleep(0)  # the first one is on its way
    fake_ui.dialog.key("tab", "")
    await fake_ui.turn()
    assert "s_3" in fake_ui.screen()


async def test_without_sessions_it_says_how_to_make_one(fake_ui):
    answering(fake_ui)
    fake_ui.open(Picker(fake_ui, lambda: NOW))
    assert "loading…" in fake_ui.screen()
    await fake_ui.turn()
    assert "ctrl+n creates one" in fake_ui.screen()
    await fake_ui.press("enter", "c-d", "c-r")
    assert fake_ui.switched == []


async def test_a_new_session_is_of_this_directory(fake_ui):
    await opened(fake_ui, Picker)
    fake_ui.answers[api.SessionCreate] = api.Created(IDLE, 0, "e")
    await fake_ui.press("c-n")
    assert fake_ui.switched == ["s_3"]
    assert fake_ui.asked[-1] == api.SessionCreate(cwd="/home/me/p", env={"HOME": "/home/me"}, discard_unused=True)


async def test_a_session_is_renamed(fake_ui):
    await opened(fake_ui, Picker, WAITS)
    fake_ui.answers[api.Rename] = structs.replace(WAITS, name="manual")
    await fake_ui.press("c-r", "c-u", *"manual", "enter")
    assert fake_ui.asked[-1] == api.Rename(session="s_2", name="manual")
    assert "manual" in fake_ui.screen()


async def test_a_session_is_deleted_after_a_yes(fake_ui):
    await opened(fake_ui, Picker, WAITS)
    await fake_ui.press("c-d", "n")
    assert fake_ui.administered == []
    await fake_ui.press("c-d")
    assert "delete docs 日本" in fake_ui.screen()
    await fake_ui.press("y")
    assert fake_ui.administered == [api.Mutation(session="s_2")]
    assert fake_ui.commands[-1] == "session.delete"
    assert "docs" not in fake_ui.screen()


async def test_a_session_that_cannot_be_deleted_stays(fake_ui):
    await opened(fake_ui, Picker, WAITS)
    fake_ui.answers[api.Mutation] = CallError("busy", "the session is busy")
    await fake_ui.press("c-d", "y")
    assert fake_ui.said == ["the session is busy"]
    assert "docs" in fake_ui.screen()


async def test_the_session_that_one_is_in_cannot_be_deleted(fake_ui):
    await opened(fake_ui, Picker, HERE)
    await fake_ui.press("tab", "c-d")
    assert "switch to another one" in fake_ui.said[0]
    assert len(fake_ui.dialogs) == 1


async def test_what_happens_elsewhere_shows_at_once(fake_ui):
    picker = await opened(fake_ui, Picker, WAITS, structs.replace(IDLE, cwd=WAITS.cwd))
    assert isinstance(picker, Watching)
    fake_ui.answers[api.OfSession] = structs.replace(FAILED, cwd=WAITS.cwd)
    await fake_ui.press("down")
    picker.see(events.SessionUpdated("docs", WAITS.cwd, "running", session="s_2"))
    picker.see(events.SessionAdded("broken", WAITS.cwd, "blocked", session="s_4"))
    await fake_ui.turn()
    lines = fake_ui.screen().splitlines()
    assert lines[1:4] == ["  failed   broken  3m", "  working  docs    now  $0.42", "> idle     s_3     3d"]
    picker.see(events.SessionRemoved(session="s_3"))
    assert "> working  docs" in fake_ui.screen()


async def test_ctrl_c_and_keys_without_a_meaning_are_left_to_the_application(fake_ui):
    for dialog in (Picker, Overview):
        await opened(fake_ui, dialog, HERE, WAITS)
        assert not await fake_ui.press("c-c")
        assert not await fake_ui.press("f5")
        await fake_ui.press("escape")
    assert fake_ui.dialogs == []


@pytest.mark.parametrize("dialog", [Picker, Overview])
@pytest.mark.parametrize("height", [0, 1, 2, 3, 5, 12])
async def test_nothing_of_a_session_steers_the_terminal(fake_ui, dialog, height):
    evil = structs.replace(HERE, name=EVIL, cwd=EVIL, state="new state", updated="whenever")
    asked = question(tool=EVIL, preview=EVIL * 50)
    await opened(fake_ui, dialog, evil, questions=[asked], line=EVIL)
    await fake_ui.press("tab")
    fake_ui.screen(30, height)


# --- the overview -------------------------------------------------------------------------------------------------------


async def test_the_most_urgent_comes_first_with_what_it_waits_for(fake_ui):
    await opened(fake_ui, Overview, HERE, WAITS, IDLE, FAILED, questions=[question(session="s_2", preview="npm test")])
    assert fake_ui.screen(80) == (
        "all sessions  1 needs you\n"
        "> needs you  docs 日本             2h  $0.42  ~/p\n"
        "  failed     broken                3m         /srv/other\n"
        "  working    fix the tests (here)  3m         ~/src/p\n"
        "  idle       s_3                   3d         /srv/other\n"
        "bash: npm test\n"
        "y once  n no  enter open  esc close"
    )


async def test_of_a_session_that_waits_for_nothing_the_newest_line_is_shown(fake_ui):
    await opened(fake_ui, Overview, HERE, line="first\nall tests pass\n")
    assert "  all tests pass" in fake_ui.screen()
    assert "y once" not in fake_ui.screen()


@pytest.mark.parametrize(("key", "decision"), [("y", "allow"), ("n", "deny")])
async def test_a_call_is_decided_about_without_opening_its_session(fake_ui, key, decision):
    questions = [question(session="s_2")]
    await opened(fake_ui, Overview, WAITS, questions=questions)
    questions.clear()
    await fake_ui.press(key, key)
    (sent,) = [one for one in fake_ui.asked if isinstance(one, api.Approve)]
    assert (sent.session, sent.approval, sent.args_digest, sent.decision, sent.scope) == (
        "s_2",
        "a_1",
        "d1",
        decision,
        "once",
    )
    assert "y once" not in fake_ui.screen()
    assert fake_ui.switched == []


async def test_a_call_with_a_cut_preview_cannot_be_allowed(fake_ui):
    await opened(fake_ui, Overview, WAITS, questions=[question(session="s_2", preview="\n".join("abcdefgh"))])
    assert "… 4 more lines: enter shows them" in fake_ui.screen()
    await fake_ui.press("y")
    assert not any(isinstance(one, api.Approve) for one in fake_ui.asked)
    await fake_ui.press("n")
    assert any(isinstance(one, api.Approve) for one in fake_ui.asked)


async def test_nothing_is_decided_about_a_session_that_was_not_shown_yet(fake_ui):
    questions = [question(session="s_2"), question("a_2", session="s_4")]
    await opened(fake_ui, Overview, WAITS, FAILED, questions=questions)
    await fake_ui.press("down", "y")
    assert not any(isinstance(one, api.Approve) for one in fake_ui.asked)


async def test_a_question_that_comes_up_meanwhile_is_shown(fake_ui):
    questions: list[ApprovalRequested] = []
    overview = await opened(fake_ui, Overview, HERE, questions=questions)
    questions.append(question(preview="rm -r build"))
    overview.see(events.SessionUpdated(HERE.name, HERE.cwd, "waiting", session="s_1"))
    await fake_ui.turn()
    assert "bash: rm -r build" in fake_ui.screen()


async def test_enter_opens_the_session(fake_ui):
    await opened(fake_ui, Overview, HERE, WAITS)
    await fake_ui.press("down", "enter")
    assert fake_ui.switched == ["s_1"]
    assert fake_ui.dialogs == []


async def test_f2_closes_it_again(fake_ui):
    await opened(fake_ui, Overview, HERE)
    assert await fake_ui.press("f2")
    assert fake_ui.dialogs == []


@pytest.mark.parametrize(
    ("block", "line"),
    [
        (Text("one\n\n two \n\n"), " two "),
        (ToolCall("c", "bash", {}), "calls bash"),
        (ToolResult("c", is_error=False, content=[Text("out\nput")]), "put"),
    ],
)
def test_the_newest_line_is_the_last_that_says_something(block, line):
    assert newest_line([Message("assistant", [Text("before")], ""), Message("x", [block], "")]) == line
