"""Journeys 24 to 31: what the terminal shows, whatever its size, its colours and the text that comes."""

import re

import pytest

from tests.zottui.journeys.table import journey
from tests.zottui.journeys.world import PROMPT, rests
from tests.zottui.journeys.world import world as made
from zotd.testing.script import CallPart, TextPart

SHELL_PROMPT = r"^[$#] ?$"

STATUS = "openai/scripted"

DRAFT = "a draft with 日本語 in it that does not fit on one line of a narrow terminal"

SGR = re.compile(r"\x1b\[[\d;]+m")
"""A colour or a shape; `CSI m` alone takes them away."""

FOCUS_IN, FOCUS_OUT = ("1b", "5b", "49"), ("1b", "5b", "4f")


def ask(zot, words="go"):
    zot.wait(PROMPT)
    zot.type(words)
    zot.key("Enter")


def joined(text):
    """Without the ends of lines, wherever they are."""
    return "".join(text.split())


# --- 24 ----------------------------------------------------------------------------------------------------------


@journey(24)
def test_resized_while_the_model_answers_everything_is_there_once(world):
    sizes = (60, 40, 120, 100)
    gates = [world.model.gate() for _ in sizes]
    steps = [TextPart(["mark-0 " + "word " * 40 + "\n\n"])]
    for number, gate in enumerate(gates, 1):
        steps += [gate, TextPart([f"mark-{number} " + "word " * 40 + f"\n\n```python\nprint({number}00)\n```\n\n"])]
    world.model.says(steps)
    zot = world.zot()
    ask(zot)
    zot.wait("mark-0")
    zot.type(DRAFT)
    zot.wait("narrow terminal$")
    for number, (gate, columns) in enumerate(zip(gates, sizes, strict=True), 1):
        zot.resize(columns, 30)
        zot.until(lambda: joined(DRAFT) in joined(zot.screen()), "the draft")
        world.model.open(gate)
        zot.wait(f"mark-{number} ", where="history")
    zot.until(lambda: "ing… " not in zot.screen(), "the end of the reply")
    zot.wait(f"^❯ {DRAFT}$")
    shown = zot.history()
    marks = [f"mark-{number} " for number in range(5)] + [f"print({number}00)" for number in range(1, 5)]
    assert [shown.count(mark) for mark in marks] == [1] * len(marks)
    assert shown.count("❯ ") == 2
    assert shown.count(STATUS) == 1
    assert shown.count("a draft with") == 1


@journey(24)
def test_a_fast_resize_loses_no_row(world):
    world.model.says("\n\n".join(f"paragraph {number}" for number in range(20)))
    zot = world.zot()
    ask(zot)
    zot.wait("^paragraph 19$")
    rests(zot)
    for rows in (12, 29, 8, 28, 30):
        zot.resize(100, rows)
    zot.until(lambda: STATUS in zot.screen().split("\n")[-1], "the status bar")
    assert zot.history().count(STATUS) == 1
    assert zot.history().count("paragraph 19") == 1


# --- 25 ----------------------------------------------------------------------------------------------------------


@journey(25)
def test_in_eight_rows_there_is_room_for_editor_status_and_popup(world):
    zot = world.zot(rows=8, columns=60)
    zot.wait(STATUS)
    zot.type("/")
    zot.wait("^/approvals")
    first = zot.screen().split("\n")
    assert len(first) <= 8
    assert first[-2].startswith("❯ /")
    assert STATUS in first[-1]
    for _ in range(10):
        zot.key("Down")
    zot.until(lambda: "/approvals" not in zot.screen(), "scrolling")
    assert STATUS in zot.screen().split("\n")[-1]
    zot.key("Escape", "BSpace")
    zot.wait(PROMPT)


@journey(25)
def test_in_eight_rows_a_question_and_a_long_draft_have_room(world):
    (world.cwd / "a.py").write_text("".join(f"{n}\n" for n in range(40)))
    edit = CallPart("edit", {"path": "a.py", "edits": [{"oldText": "\n20\n", "newText": "\n" + "new\n" * 20}]})
    world.model.says([edit], "all done")
    zot = world.zot("--mode", "ask", rows=8, columns=60)
    ask(zot)
    zot.wait("^y once")
    assert "● edit a.py needs you" in zot.screen()
    assert STATUS in zot.screen().split("\n")[-1]
    zot.key("Tab")
    zot.until(lambda: "y once" not in zot.screen(), "the end of the question")
    zot.paste("\n".join(f"row {n}" for n in range(12)))
    zot.wait("row 11$")
    rows = zot.screen().split("\n")
    assert STATUS in rows[-1]
    assert "needs you" in rows[-1]


# --- 26 ----------------------------------------------------------------------------------------------------------


@journey(26)
def test_the_cursor_follows_wide_text_and_backspace_deletes_one_character(world):
    zot = world.zot()
    zot.wait(PROMPT)
    columns = [2]
    for character, width in (
        ("日", 2),
        ("👩‍👩‍👧", 6),
        ("é", 1),
        ("ש", 1),
        ("👍🏽", 4),
    ):  # as wide as this tmux has them
        zot.type(character)
        columns.append(columns[-1] + width)
        zot.until(lambda: zot.cursor[0] == columns[-1], f"the cursor behind {character}")
    zot.wait("^❯ 日👩‍👩‍👧éש👍🏽$")
    for column in columns[-2::-1]:
        zot.key("BSpace")
        zot.until(lambda: zot.cursor[0] == column, f"the cursor in {column}")  # noqa: B023  (used at once)
    zot.wait(PROMPT)


@journey(26)
def test_wide_and_joined_characters_are_streamed_as_they_are(world):
    gate = world.model.gate()
    said = ["日本", "語テキ", "スト と 👩‍👩", "‍👧 e", "\u0301 ", "שלום end"]
    world.model.says([TextPart(said), gate, TextPart(["\n\nall done"])])
    zot = world.zot()
    ask(zot)
    zot.wait("שלום end$")
    world.model.open(gate)
    zot.wait("^all done$")
    assert zot.history().count("".join(said)) == 1


# --- 27 ----------------------------------------------------------------------------------------------------------


@journey(27)
def test_what_models_and_tools_say_does_nothing_to_the_terminal(world):
    evil = "\x1b]0;evil\x07\x1b]52;c;ZXZpbA==\x07\x1b[2J[red]x[/red]\x9b2J"
    world.model.says([TextPart([f"bad {evil}\n\n"]), CallPart("bash", {"command": "cat evil"})], "all done")
    (world.cwd / "evil").write_text(f"worse {evil}\n")
    zot = world.zot()
    ask(zot, "look")
    zot.wait("^all done$")
    assert "❯ look" in zot.screen()
    shown = "^[]0;evil^G^[]52;c;ZXZpbA==^G^[[2J[red]x[/red]"
    assert f"bad {shown}" in zot.screen()
    assert f"worse {shown}" in zot.screen()
    assert "evil" not in zot.ask("#{pane_title}")
    assert zot.tmux("list-buffers") == ""


# --- 28 ----------------------------------------------------------------------------------------------------------


@journey(28)
@pytest.mark.parametrize(
    ("command", "copied"),
    [("/copy", "one\n\n```python\nx = 1\n```\n\ntwo"), ("/copy code", "x = 1")],
)
def test_a_reply_or_its_code_is_on_the_clipboard(world, command, copied):
    world.model.says("one\n\n```python\nx = 1\n```\n\ntwo")
    zot = world.zot()
    ask(zot)
    zot.wait("^two$")
    rests(zot)
    ask(zot, command)
    zot.wait("copied")
    zot.until(lambda: zot.tmux("list-buffers"), "the clipboard")
    assert zot.tmux("show-buffer") == copied


# --- 29 ----------------------------------------------------------------------------------------------------------


@journey(29)
def test_the_background_of_the_terminal_chooses_the_theme(world):
    shell = world.shell()
    for background, name in (("#ffffff", "light"), ("#000000", "dark"), ("default", "default")):
        shell.wait(SHELL_PROMPT)
        shell.tmux("set", "-g", "window-style", f"bg={background}")
        ask_shell(shell, "zot")
        ask(shell, "/status")
        shell.wait(rf"^  theme +{name}$")
        shell.key("C-d")


def ask_shell(shell, command):
    shell.type(command)
    shell.key("Enter")


# --- 30 ----------------------------------------------------------------------------------------------------------


@journey(30)
def test_without_colours_roles_are_words(world):
    world.model.says([TextPart(["# one\n\n**two**\n\n"]), CallPart("bash", {"command": "echo out"})], "all done")
    zot = world.zot(NO_COLOR="1")
    ask(zot)
    zot.wait("^zot: all done$")
    assert not SGR.search(zot.screen(colours=True))
    assert "you: go" in zot.screen()
    assert "tool: bash" in zot.screen()


@journey(30)
def test_in_plain_lines_nothing_moves_and_nothing_is_coloured(world):
    world.model.says([TextPart(["**two**\n\n"]), CallPart("bash", {"command": "echo out"})], "all done")
    zot = world.zot("--plain", NO_COLOR="1")
    zot.wait("^> ?$")
    zot.type("go")
    zot.key("Enter")
    zot.wait("^zot: all done$")
    said = zot.raw().replace(b"\x1b[?2004h", b"").replace(b"\x1b[?2004l", b"")
    assert b"\x1b[" not in said


# --- 31 ----------------------------------------------------------------------------------------------------------


NOTIFICATION = b"\x1b]9;"


@pytest.fixture
def quick(tmp_path):
    """A daemon that calls people however short the run was."""
    with made(tmp_path, limits={"attention_s": 0}) as one:
        yield one


def alarms(zot):
    return zot.raw().count(NOTIFICATION)


def focus(world, zot, code, *looks):
    """Give the terminal the focus, or take it away; until the daemon knows who looks."""
    (session,) = world.call("session.list")["sessions"]

    def known():
        clients = world.call("presence", session=session["id"])["clients"]
        return [client.get("focused") for client in clients] == list(looks)

    zot.send_hex(*code)
    zot.until(known, f"{looks} in the daemon")


@journey(31)
def test_only_a_terminal_without_focus_notifies_and_only_once(quick):
    quick.model.says("one", "two", "three")
    zot = quick.zot()
    zot.wait(PROMPT)
    focus(quick, zot, FOCUS_IN, True)
    ask(zot, "first")
    zot.wait("^one$")
    focus(quick, zot, FOCUS_OUT, False)
    ask(zot, "second")
    zot.wait("^two$")
    zot.until(lambda: alarms(zot) == 1, "a notification")
    zot.until(lambda: zot.ask("#{pane_title}").startswith("● "), "a mark in the title")
    assert zot.ask("#{window_bell_flag}") == "1"
    focus(quick, zot, FOCUS_IN, True)
    zot.until(lambda: not zot.ask("#{pane_title}").startswith("● "), "the title without the mark")
    ask(zot, "third")
    zot.wait("^three$")
    ask(zot, "/status")
    zot.wait("theme")
    assert alarms(zot) == 1


@journey(31)
def test_of_two_terminals_the_one_that_was_used_last_calls(quick):
    gate = quick.model.gate()
    quick.model.says([gate, TextPart(["all done"])])
    first = quick.zot()
    first.wait(PROMPT)
    second = quick.zot()
    second.wait("2 clients")
    ask(first)
    second.wait("❯ go")
    focus(quick, second, FOCUS_OUT, False, False)
    focus(quick, first, FOCUS_IN, True, False)
    focus(quick, first, FOCUS_OUT, False, False)
    quick.model.open(gate)
    first.until(lambda: alarms(first) == 1, "a notification")
    second.wait("^all done$")
    assert alarms(second) == 0


@journey(31)
def test_a_question_calls_too(quick):
    quick.model.says([CallPart("bash", {"command": "touch made"})], "all done")
    zot = quick.zot("--mode", "ask")
    zot.wait(PROMPT)
    focus(quick, zot, FOCUS_OUT, False)
    ask(zot)
    zot.until(lambda: alarms(zot) == 1, "a notification")
    zot.until(lambda: zot.ask("#{pane_title}").startswith("● needs you"), "the title")


# --- prose --------------------------------------------------------------------------------------------------------

REPLY = """The daemon waits longer between two attempts each time.

- an item whose words take more than a single row of this terminal
  - and one within it that does so too, because it is nested

| Setting | Default | Meaning |
|---|---:|---|
| `patience` | 14400 | How long a run keeps trying before it gives up |

```sh
zotctl retry
```
"""


def test_a_reply_breaks_between_words_and_keeps_its_shape(world):
    world.model.says(REPLY)
    zot = world.zot(columns=44, NO_COLOR="1")
    ask(zot)
    zot.wait("zotctl retry")
    rests(zot)
    said = zot.history().partition("zot: ")[2].split("\n")
    assert [line.rstrip() for line in said[:17]] == [
        "The daemon waits longer between two",
        "attempts each time.",
        "",
        "- an item whose words take more than a",
        "  single row of this terminal",
        "  - and one within it that does so too,",
        "    because it is nested",
        "",
        "Setting     Default  Meaning",
        "----------  -------  -----------------------",
        "`patience`    14400  How long a run keeps",
        "                     trying before it gives",
        "                     up",
        "",
        "```sh",
        "zotctl retry",
        "```",
    ]


def test_a_reply_is_left_to_the_terminal_to_wrap_where_that_is_set(world):
    world.configure(terminal={"wrap": "terminal"})
    world.model.says("word " * 30 + "end")
    zot = world.zot(columns=50)
    ask(zot)
    zot.wait("end$", where="history")
    rests(zot)
    assert "word " * 30 + "end" in zot.tmux("capture-pane", "-p", "-J", "-S", "-")


def test_the_mode_yolo_begins_with_a_warning_and_stays_in_the_status_line(world):
    zot = world.zot("-y")
    zot.wait("WARNING: the mode of this session is yolo: every call")
    zot.wait("· yolo")
    zot.wait(PROMPT)
