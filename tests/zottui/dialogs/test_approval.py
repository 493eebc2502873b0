"""Deciding about a call that waits."""

import json
import sys
from dataclasses import replace

import pytest

from tests.zottui.fake_ui import FakeUi
from tests.zottui.widgets.states import EVIL, LIVE, question
from zotd.client.errors import CallError, NoAnswerError
from zotd.wire import api
from zottui.blocks import CodeLines
from zottui.dialogs.approval import QUIET_S
from zottui.dialogs.questions import ApprovalDialogs

RULE = '[[rules]]\ntool = "bash"\nmatch = "npm test"\naction = "allow"\n'

DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-old\n+new"


class Asked:
    """A fake application that keeps its questions up to date, as the real one does."""

    def __init__(self, fake_ui, *questions):
        self.fake_ui = fake_ui
        self.questions = ApprovalDialogs(fake_ui)
        self.pending(*questions)
        fake_ui.time += QUIET_S

    def pending(self, *questions):
        self.fake_ui.state = replace(self.fake_ui.state, approvals=questions)
        self.questions.look()

    @property
    def sent(self):
        return [one for one in self.fake_ui.asked if isinstance(one, api.Approve)]

    @property
    def decisions(self):
        return [(one.approval, one.decision, one.scope) for one in self.sent]


def test_nothing_is_asked_when_nothing_waits(fake_ui):
    Asked(fake_ui)
    assert fake_ui.dialogs == []


SCREENS = {
    20: ("● bash needs you  u…\nnpm test\ny once\ns this session\na always  n no"),
    40: (
        "● bash needs you  until 20:11 UTC\n"
        "npm test\n"
        "y once  s this session  a always  n no\n"
        "f no, because…  e edit  ctrl+t all\n"
        "tab later"
    ),
    80: (
        "● bash needs you  until 20:11 UTC\n"
        "npm test\n"
        "y once  s this session  a always  n no  f no, because…  e edit  ctrl+t all\n"
        "tab later"
    ),
    140: (
        "● bash needs you  until 20:11 UTC\n"
        "npm test\n"
        "y once  s this session  a always  n no  f no, because…  e edit  ctrl+t all  tab later"
    ),
}


@pytest.mark.parametrize("width", SCREENS)
def test_the_call_and_the_keys_are_shown(fake_ui, width):
    Asked(fake_ui, question(preview="npm test", rule=RULE, expires="2026-11-21T20:11:18.000Z"))
    assert fake_ui.screen(width) == SCREENS[width]


def test_a_call_that_no_rule_can_allow_is_not_offered_for_longer(fake_ui):
    Asked(fake_ui, question(preview="npm test"))
    assert "session" not in fake_ui.screen()
    assert "always" not in fake_ui.screen()


@pytest.mark.parametrize(
    ("key", "decision", "scope"), [("y", "allow", "once"), ("s", "allow", "session"), ("n", "deny", "once")]
)
async def test_one_key_decides(fake_ui, key, decision, scope):
    asked = Asked(fake_ui, question(rule=RULE))
    await fake_ui.press(key)
    assert asked.decisions == [("a_1", decision, scope)]
    assert fake_ui.asked[0].args_digest == "d1"
    assert fake_ui.asked[0].session == "s_1"
    assert fake_ui.dialogs == []


@pytest.mark.parametrize("key", ["s", "a"])
async def test_keys_that_are_not_offered_do_nothing(fake_ui, key):
    asked = Asked(fake_ui, question())
    assert await fake_ui.press(key)
    assert asked.decisions == []


async def test_always_shows_the_rule_before_it_is_saved(fake_ui):
    asked = Asked(fake_ui, question(rule=RULE))
    await fake_ui.press("a")
    assert asked.decisions == []
    assert 'match = "npm test"' in fake_ui.screen()
    await fake_ui.press("y")
    assert asked.decisions == [("a_1", "allow", "always")]


@pytest.mark.parametrize("key", ["n", "enter", "escape", "x"])
async def test_any_other_key_does_not_save_the_rule(fake_ui, key):
    asked = Asked(fake_ui, question(rule=RULE))
    await fake_ui.press("a", key)
    assert asked.decisions == []
    assert "y once" in fake_ui.screen()


async def test_a_denial_can_have_a_reason(fake_ui):
    asked = Asked(fake_ui, question())
    await fake_ui.press("f", *"use yarn", "enter")
    assert asked.decisions == [("a_1", "deny", "once")]
    assert fake_ui.asked[0].reason == "use yarn"


async def test_the_reason_can_be_given_up(fake_ui):
    asked = Asked(fake_ui, question())
    await fake_ui.press("f", *"yes", "escape", "y")
    assert asked.decisions == [("a_1", "allow", "once")]
    assert fake_ui.asked[0].reason is None


async def test_questions_are_asked_one_after_the_other(fake_ui):
    first, second = question("a_1"), question("a_2", tool="write")
    asked = Asked(fake_ui, first, second)
    assert "● bash needs you  1 of 2" in fake_ui.screen()
    await fake_ui.press("y")
    assert "● write needs you" in fake_ui.screen()
    asked.pending(second)
    fake_ui.time += QUIET_S
    await fake_ui.press("n")
    assert asked.decisions == [("a_1", "allow", "once"), ("a_2", "deny", "once")]


def test_a_question_that_is_answered_elsewhere_closes(fake_ui):
    asked = Asked(fake_ui, question())
    asked.pending()
    assert fake_ui.dialogs == []


async def test_a_question_that_is_put_off_comes_again_only_when_it_is_wanted(fake_ui):
    asked = Asked(fake_ui, question())
    await fake_ui.press("tab")
    asked.questions.look()
    assert fake_ui.dialogs == []
    asked.questions.again()
    assert "● bash needs you" in fake_ui.screen()


async def test_ctrl_c_and_escape_are_left_to_the_application(fake_ui):
    asked = Asked(fake_ui, question(rule=RULE))
    assert not await fake_ui.press("escape")
    for stage in ((), ("f",), ("escape", "a")):
        assert not await fake_ui.press(*stage, "c-c")
    assert asked.decisions == []


async def test_keys_typed_when_a_question_appears_decide_nothing(fake_ui):
    asked = Asked(fake_ui, question())
    fake_ui.time -= QUIET_S
    fake_ui.text = "he"
    for letter in "y n e":
        assert not await fake_ui.press(letter)
        fake_ui.time += QUIET_S / 2
    fake_ui.time += QUIET_S / 2
    await fake_ui.press("y")
    assert asked.decisions == [("a_1", "allow", "once")]


async def test_a_decision_typed_twice_is_neither_the_next_one_nor_a_draft(fake_ui):
    asked = Asked(fake_ui, question("a_1"), question("a_2"))
    await fake_ui.press("y")
    assert await fake_ui.press("y")
    assert asked.decisions == [("a_1", "allow", "once")]


async def test_while_a_decision_is_on_its_way_keys_do_nothing(fake_ui):
    asked = Asked(fake_ui, question())
    fake_ui.dialog.key("<any>", "y")
    fake_ui.dialog.key("<any>", "n")
    await fake_ui.turn()
    assert asked.decisions == [("a_1", "allow", "once")]


async def test_after_a_failure_the_question_stays_and_says_why(fake_ui):
    asked = Asked(fake_ui, question())
    fake_ui.answers[api.Approve] = NoAnswerError("zotd did not answer")
    await fake_ui.press("y")
    assert "zotd did not answer" in fake_ui.screen()
    del fake_ui.answers[api.Approve]
    await fake_ui.press("y")
    assert asked.decisions == [("a_1", "allow", "once")] * 2
    assert fake_ui.dialogs == []


@pytest.mark.parametrize(
    ("code", "said"), [("already_resolved", []), ("stale_args", ["look again"]), ("not_found", ["look again"])]
)
async def test_a_decision_that_comes_too_late_closes_the_question(fake_ui, code, said):
    asked = Asked(fake_ui, question())
    fake_ui.answers[api.Approve] = CallError(code, "look again")
    await fake_ui.press("y")
    asked.questions.look()
    assert fake_ui.dialogs == []
    assert fake_ui.said == said


async def test_a_long_preview_is_cut_scrolled_and_printed(fake_ui):
    added = [f"+line {n}" for n in range(40)]
    Asked(fake_ui, question(tool="edit", preview="\n".join(["--- a/x.py", "+++ b/x.py", "@@ -0,0 +1,40 @@", *added])))
    assert "… 31 more lines (ctrl+t prints all)" in fake_ui.screen()
    await fake_ui.press("pagedown")
    assert " 1 + line 0" not in fake_ui.screen()
    await fake_ui.press("pagedown", "pagedown", "pagedown", "pagedown", "pagedown")
    assert "40 + line 39" in fake_ui.screen()
    await fake_ui.press("c-t")
    (block,) = fake_ui.printed
    assert isinstance(block, CodeLines)
    assert block.language == "diff"
    assert len(block.lines) == 43


def test_a_diff_has_its_colours_and_the_numbers_of_its_lines(fake_ui):
    Asked(fake_ui, question(tool="edit", args={"path": "x.py"}, preview=DIFF))
    looks = {text: look for row in fake_ui.dialog.rows(80, 12) for look, text in row}
    assert looks["- old"] == "class:removed"
    assert looks["+ new"] == "class:added"
    assert looks["1 "] == "class:muted"
    assert "● edit x.py needs you\n1 - old\n1 + new\n" in fake_ui.screen()


@pytest.mark.parametrize(
    "preview", [f"{DIFF}\n[9,999 more characters are not shown]", "new file x.py (9 bytes)\n+one\n+two"]
)
def test_a_preview_with_more_than_a_diff_is_shown_unchanged(fake_ui, preview):
    Asked(fake_ui, question(tool="write", preview=preview))
    assert preview in fake_ui.screen()


def test_a_call_without_a_preview_shows_its_arguments(fake_ui):
    Asked(fake_ui, question(preview=None, args={"command": "npm test"}))
    assert '"command": "npm test"' in fake_ui.screen()


def test_nothing_of_a_call_steers_the_terminal(fake_ui):
    Asked(fake_ui, question(tool=EVIL, preview=EVIL, rule=EVIL))
    assert "^[[2J" in fake_ui.screen()


@pytest.mark.parametrize("height", range(9))
async def test_it_fits_into_any_height(fake_ui, height):
    Asked(fake_ui, question(preview="\n".join("abcdefghijk"), rule=RULE))
    for key in ("up", "a", "n", "f"):
        await fake_ui.press(key)
        fake_ui.screen(30, height)


# --- arguments that are edited ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["network", "files"])
async def test_a_question_of_a_command_that_has_started_cannot_be_edited(tmp_path, tool):
    async with FakeUi(LIVE, env=editor(tmp_path, "{}")) as fake_ui:
        asked = Asked(fake_ui, question(tool=tool, preview="npm test", rule=RULE))
        assert "edit" not in fake_ui.screen()
        await fake_ui.press("e")
        await fake_ui.press("y")
    assert (asked.sent[0].args, fake_ui.suspensions) == (None, 0)


def editor(tmp_path, text):
    """An editor that writes this."""
    script = tmp_path / "editor.py"
    script.write_text(f"import sys\nopen(sys.argv[1], 'w').write({text!r})\n")
    return {"EDITOR": f"{sys.executable} {script}"}


async def edited(fake_ui):
    """Press `e`, and wait until the editor has ended."""
    before = fake_ui.redraws
    await fake_ui.press("e")
    await fake_ui.until(lambda: fake_ui.redraws > before or fake_ui.said)


async def test_edited_arguments_are_shown_before_they_are_allowed(tmp_path):
    other = {"command": "yarn test"}
    async with FakeUi(LIVE, env=editor(tmp_path, json.dumps(other))) as fake_ui:
        asked = Asked(fake_ui, question(preview="npm test", rule=RULE))
        await edited(fake_ui)
        assert fake_ui.suspensions == 1
        assert '"command": "yarn test"' in fake_ui.screen()
        assert "session" not in fake_ui.screen()
        fake_ui.time += QUIET_S
        await fake_ui.press("y")
        assert asked.decisions == [("a_1", "allow", "once")]
        assert asked.sent[0].args == other


async def test_a_denial_takes_no_arguments_along(tmp_path):
    async with FakeUi(LIVE, env=editor(tmp_path, '{"command": "ls"}')) as fake_ui:
        asked = Asked(fake_ui, question())
        await edited(fake_ui)
        fake_ui.time += QUIET_S
        await fake_ui.press("n")
        assert asked.sent[0].args is None


@pytest.mark.parametrize("text", ["{", "[]", "\x00"])
async def test_arguments_that_are_no_json_object_are_not_taken(tmp_path, text):
    async with FakeUi(LIVE, env=editor(tmp_path, text)) as fake_ui:
        asked = Asked(fake_ui, question())
        await edited(fake_ui)
        assert "must be a JSON object" in fake_ui.screen()
        fake_ui.time += QUIET_S
        await fake_ui.press("y")
        assert asked.sent[0].args is None


async def test_arguments_that_are_left_as_they_were_can_still_be_allowed_for_longer(tmp_path):
    async with FakeUi(LIVE, env={"EDITOR": "true"}) as fake_ui:
        Asked(fake_ui, question(rule=RULE))
        await edited(fake_ui)
        assert "this session" in fake_ui.screen()


async def test_without_an_editor_it_says_so():
    async with FakeUi(LIVE, env={"EDITOR": "/nowhere/vi"}) as fake_ui:
        Asked(fake_ui, question())
        await edited(fake_ui)
        assert "/nowhere/vi" in fake_ui.said[0]


# --- plans ------------------------------------------------------------------------------------------------------------

PROPOSED = {"steps": [{"text": "look", "state": "done"}, {"text": "change"}]}


async def test_a_plan_is_shown_and_edited_as_lines(tmp_path):
    written = "# ignored\n[ ] look\nrun the tests\n"
    async with FakeUi(LIVE, env=editor(tmp_path, written)) as fake_ui:
        asked = Asked(fake_ui, question(tool="plan", args=PROPOSED, preview="[x] look\n[ ] change"))
        assert fake_ui.screen().startswith("● plan needs you\n[x] look\n[ ] change\ny approve  n no")
        await edited(fake_ui)
        assert "[ ] look\n[ ] run the tests\n" in fake_ui.screen()
        fake_ui.time += QUIET_S
        await fake_ui.press("y")
    [sent] = asked.sent
    assert (sent.decision, sent.scope) == ("allow", "once")
    assert sent.args == {"steps": [{"text": "look", "state": "pending"}, {"text": "run the tests", "state": "pending"}]}
