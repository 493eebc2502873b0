"""Journeys of beginning, and of reading what the model says."""

import re
import socket
import subprocess

import pytest

from tests.zottui.journeys.table import journey
from tests.zottui.journeys.world import PROMPT
from zotd.testing.script import ScriptedReply, TextPart
from zotd.wire.content import Tokens

SHELL = r"^[#$] ?$"
"""A prompt of the shell with nothing behind it."""

WORKING = r"working…|writing…|thinking…"

LIVE_ROWS = 12


def say(zot, words):
    zot.type(words)
    zot.key("Enter")


@pytest.fixture
def zot(world):
    zot = world.zot()
    zot.wait(PROMPT)
    zot.wait("openai/scripted")
    return zot


# --- 1: the beginning -------------------------------------------------------------------------------------------------


@journey(1)
def test_in_an_empty_home_there_is_a_prompt_below_what_the_shell_had_shown(world):
    subprocess.run(["git", "init", "-q", "-b", "main", world.cwd], check=True)
    shell = world.shell(HOME=str(world.folder))
    shell.wait(SHELL)
    say(shell, "echo the shell said this")
    shell.wait("^the shell said this$")
    say(shell, "zot")
    shell.wait(PROMPT)
    shell.wait(r"^openai/scripted · yolo · ~/work · main$")
    assert re.search(r"^the shell said this$", shell.history(), re.MULTILINE)


@journey(1)
def test_a_new_session_names_the_version_and_the_first_one_what_to_press(world):
    zot = world.zot()
    zot.wait("^· zot [0-9.]+ · / lists commands, esc interrupts, F2 shows all sessions$")
    zot.wait(PROMPT)
    again = world.zot("-n")
    again.wait("^· zot [0-9.]+$")
    assert "lists commands" not in again.history()


@journey(1)
def test_leaving_returns_to_the_shell_and_erases_the_editor(world):
    shell = world.shell()
    say(shell, "zot")
    shell.wait("openai/scripted")
    title = shell.ask("#{pane_title}")
    assert title.startswith("zot")
    say(shell, "/exit")
    shell.wait(SHELL)
    assert "❯" not in shell.history()
    assert "openai/scripted" not in shell.history()
    assert shell.ask("#{pane_title}") != title


@journey(1)
def test_text_typed_before_the_first_paint_is_in_the_editor(world):
    shell = world.shell()
    shell.type("zot\rtyped early")
    shell.wait("^❯ typed early$")
    assert shell.history().count("typed early") == 1


@journey(1)
def test_without_a_daemon_one_is_started(world):
    world.model.says("hello")
    world.run("zotctl", "stop")
    try:
        zot = world.zot()
        zot.wait("openai/scripted")
        say(zot, "hi")
        zot.wait("^hello$")
    finally:
        world.run("zotctl", "stop")


@journey(1)
def test_a_window_of_which_the_size_is_known_is_counted_from_the_beginning(world):
    world.zot("--model", "gpt-5").wait(r"openai/gpt-5 · .* · 0%$")


# --- 2: no key --------------------------------------------------------------------------------------------------------


@journey(2)
def test_without_a_key_one_line_says_how_to_get_one_and_a_prompt_is_not_lost(world):
    zot = world.zot(OPENAI_API_KEY="")
    zot.wait("no key for Anthropic: run /login, .*ANTHROPIC_API_KEY")
    zot.wait(PROMPT)
    assert len(re.findall("no key", zot.history())) == 1
    say(zot, "are you there?")
    zot.wait("error: no key for Anthropic: .* type /login anthropic$")
    zot.wait("^· not sent; the prompt is back in the editor")
    zot.wait(r"^❯ are you there\?$")
    zot.type("/login nobody")
    zot.wait(r"^❯ /login nobody$")
    zot.key("Enter")
    zot.wait("unknown provider nobody")
    zot.key("Up", "Up")
    zot.wait(r"^❯ are you there\?$")
    zot.type(" really")
    zot.wait(r"^❯ are you there\? really$")
    assert world.model.requests == []


@journey(2)
def test_a_key_is_tried_before_it_is_kept(world):
    world.model.server.key = "sk-right"
    zot = world.zot(OPENAI_API_KEY="")
    zot.wait("no key for Anthropic")
    say(zot, "/login openai")
    zot.wait("^API key for openai$")
    say(zot, "sk-wrong")
    zot.wait("error: OpenAI refuses this key .*the key was not saved")
    assert not (world.home / "auth.json").exists()
    say(zot, "/login openai")
    zot.wait("^API key for openai$")
    say(zot, "sk-right")
    zot.wait("saved the key for OpenAI")
    assert world.model.server.tried == ["sk-wrong", "sk-right"]
    assert world.model.requests == []


@journey(2)
def test_a_key_of_a_vendor_that_cannot_be_reached_is_kept_if_that_is_wanted(world):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        world.configure(**{"providers.groq": {"base_url": nobody}})
        world.run("zotctl", "reload")
        zot = world.zot()
        zot.wait(PROMPT)
        say(zot, "/login groq")
        zot.wait("^API key for groq$")
        say(zot, "sk-unchecked")
        zot.wait("Groq cannot be reached")
        zot.wait("save the key without a check")
        zot.key("n")
        zot.wait(PROMPT)
        assert not (world.home / "auth.json").exists()
        say(zot, "/login groq")
        zot.wait("^API key for groq$")
        say(zot, "sk-unchecked")
        zot.wait("save the key without a check")
        zot.key("y")
        zot.wait("saved the key for Groq")


@journey(2)
def test_a_key_that_login_keeps_is_used_at_once(world):
    world.model.says("I am")
    zot = world.zot(OPENAI_API_KEY="")
    zot.wait("no key for Anthropic")
    say(zot, "/login openai")
    zot.wait("^API key for openai$")
    say(zot, "sk-typed-here")
    zot.wait("saved the key for OpenAI")
    zot.wait("^openai/gpt-")
    say(zot, "are you there?")
    zot.wait("^I am$")
    assert "sk-typed-here" not in zot.history()


@journey(2)
def test_a_vendor_that_was_asked_for_is_the_one_whose_key_is_missing(world):
    zot = world.zot("--provider", "openai", OPENAI_API_KEY="")
    zot.wait("no key for OpenAI: run /login, .*OPENAI_API_KEY")


# --- 3: a reply -------------------------------------------------------------------------------------------------------


@journey(3)
def test_paragraphs_appear_as_they_come_and_once(world, zot):
    first, second = world.model.gate(), world.model.gate()
    steps = [TextPart(["One fish.\n\nTwo "]), first, TextPart(["fish.\n\nRed"]), second, TextPart([" fish."])]
    world.model.says(ScriptedReply(steps, usage=Tokens(input=1200, output=34)))
    say(zot, "hi")
    zot.wait("^One fish\\.$")
    zot.wait("^Two$")
    zot.wait(WORKING)
    world.model.open(first)
    zot.wait("^Two fish\\.$")
    world.model.open(second)
    zot.wait("^Red fish\\.$")
    zot.wait(" · 1k")
    history = zot.history()
    assert not re.search(WORKING, history)
    for line in ("❯ hi", "One fish.", "Two fish.", "Red fish."):
        assert history.split("\n").count(line) == 1
    assert zot.screen().split("\n")[-2] == "❯"


@journey(3)
def test_between_what_people_and_the_model_say_there_is_a_blank_line(world, zot):
    world.model.says("one\n\n- two\n- three", "four")
    say(zot, "hi")
    zot.wait("three$")
    say(zot, "again")
    zot.wait("^four$")
    lines = zot.history().split("\n")
    talk = lines[lines.index("❯ hi") : lines.index("four") + 1]
    assert talk == ["❯ hi", "", "one", "", "• two", "• three", "", "❯ again", "", "four"]


# --- 4: Markdown ------------------------------------------------------------------------------------------------------

PARAGRAPH = " ".join(f"word{number}" for number in range(60))

MARKDOWN = f"""\
{PARAGRAPH}

| name | size |
|------|-----:|
| a | 1 |
| longer | 20000 |

- see [the manual](https://example.org/manual)

```python
def answer():
    return 42
```

done
"""


@journey(4)
def test_markdown_is_laid_out_with_paragraphs_broken_between_words(world, zot):
    world.model.says(MARKDOWN)
    say(zot, "show me")
    zot.wait("^done$")
    lines = zot.history().split("\n")
    assert PARAGRAPH not in lines
    assert PARAGRAPH in " ".join(lines)
    assert "def answer():" in lines
    assert "    return 42" in lines
    assert any(line.startswith("── python ──") for line in lines)
    assert not any("```" in line for line in lines)
    assert any("the manual" in line for line in lines)
    rows = [next(line for line in lines if line.startswith(name)) for name in ("name", "a ", "longer")]
    assert len({len(row.rstrip()) for row in rows}) == 1  # numbers end in one column
    coloured = next(line for line in zot.screen(colours=True).split("\n") if "answer" in line)
    assert "\x1b[" in coloured


# --- 5: much of it ----------------------------------------------------------------------------------------------------

CODE = [f"line_{number} = {number}" for number in range(1, 401)]


@journey(5)
def test_code_goes_to_the_scrollback_as_it_comes_and_the_live_area_stays_low(world, zot):
    gates = [world.model.gate() for _ in range(4)]
    steps = [TextPart(["```python\n"])]
    for number, gate in enumerate(gates):
        steps += [TextPart([f"{line}\n" for line in CODE[number * 100 : number * 100 + 100]]), gate]
    world.model.says([*steps, TextPart(["```\n\nthe end"])])
    say(zot, "much code")
    shown = []
    for number, gate in enumerate(gates, 1):
        zot.wait(rf"^line_{number}00 = {number}00$")
        zot.wait(WORKING)
        shown.append(zot.history().split("\n"))
        assert [line for line in shown[-1] if line.startswith("line_")] == CODE[: number * 100]
        world.model.open(gate)
    zot.wait("^the end$")
    final = zot.history().split("\n")
    assert [line for line in final if line.startswith("line_")] == CODE
    assert not any(line.startswith("```") for line in final)
    for lines in shown:  # all that was not below is still there, where it was
        finished = next(at for at, line in enumerate(lines) if line != final[at])
        assert len(lines) - finished <= LIVE_ROWS
