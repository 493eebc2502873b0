"""Journeys 36 to 38: extensions that come, change, break, hang, and draw."""

import json
import os
import re
import signal
import textwrap

import pytest

from tests.zottui.journeys.table import journey
from tests.zottui.journeys.world import PROMPT
from tests.zottui.journeys.world import world as made
from zotd.testing.script import CallPart


def ask(zot, words="go"):
    zot.wait(PROMPT)
    zot.type(words)
    zot.key("Enter")


def extension(world, name, body, **fields):
    """One that is written with the SDK; it starts with the next session here."""
    directory = world.home / "extensions" / name
    directory.mkdir(parents=True)
    directory.joinpath("extension.json").write_text(
        json.dumps({"name": name, "exec": "python3", "args": ["main.py"], **fields})
    )
    head = f"import os\nfrom zotd.sdk import *\next = Extension({name!r})\n"
    directory.joinpath("main.py").write_text(f"{head}{textwrap.dedent(body)}\next.run()\n")


def ready(world):
    """The only extension of the only session when it is ready, else None; the prompt is drawn before that."""
    found = world.call("session.list")["sessions"]
    extensions = world.call("ext.list", session=found[0]["id"])["extensions"] if found else []
    return next((one for one in extensions if one["state"] == "ready"), None)


# --- 36 ----------------------------------------------------------------------------------------------------------


@journey(36)
def test_an_extension_is_made_linked_changed_and_broken_while_the_terminal_is_open(world):
    def answer(text):
        changed, times = re.subn(
            r"-> Prompt:(.*?)return .*?\n", rf"-> str:\1return '{text}'\n", source, flags=re.DOTALL
        )
        assert times == 1
        program.write_text(changed)

    zot = world.zot()
    zot.wait(PROMPT)
    assert "created hello" in world.run("zotctl", "ext", "new", "hello", "--lang", "py")
    program = world.cwd / "hello" / "main.py"
    source = program.read_text()
    answer("hello one")
    (world.home / "extensions").mkdir(exist_ok=True)
    (world.home / "extensions" / "hello").symlink_to(program.parent)
    assert "ready: hello" in world.run("zotctl", "ext", "reload")
    zot.type("/hell")
    zot.wait(r"^/hello .*\[hello\]$")
    zot.type("o")
    zot.key("Enter")
    zot.wait("hello one$")
    answer("hello two")
    assert "ready: hello" in world.run("zotctl", "ext", "reload", "hello")
    ask(zot, "/hello")
    zot.wait("hello two$")
    program.write_text("def (")
    assert "SyntaxError" in world.run("zotctl", "ext", "reload", "hello")
    zot.wait(
        "^· warning: hello was not reloaded and continues as before: the new process exited",
        where="history",
    )
    ask(zot, "/hello")
    zot.until(lambda: zot.screen().count("hello two") == 2, "the answer of the old one")
    ask(zot, "/ext")
    zot.wait("hello 0.1.0  ready: was not reloaded and continues as before:", where="history")
    program.write_text(source)
    assert "ready: hello" in world.run("zotctl", "ext", "reload", "hello")
    ask(zot, "/ext")
    zot.wait(r"hello [\d.]+  ready$")


# --- 37 ----------------------------------------------------------------------------------------------------------

GUARD = """
    @ext.guard("tool_call")
    def check(event):
        return None
"""


@pytest.fixture
def impatient(tmp_path):
    """A daemon that does not wait long for a guard."""
    with made(tmp_path, ext={"intercept_timeout_s": 0.2}) as one:
        yield one


@journey(37)
@pytest.mark.parametrize("on_failure", ["closed", "open"])
def test_a_guard_that_hangs_refuses_or_warns_by_its_name(impatient, on_failure):
    world = impatient
    extension(world, "watchman", GUARD, on_failure={"tool_call": on_failure})
    world.model.says([CallPart("bash", {"command": "touch made"})], "all done")
    zot = world.zot()
    zot.wait(PROMPT)
    os.kill(zot.until(lambda: ready(world), "the extension")["pid"], signal.SIGSTOP)
    ask(zot)
    zot.wait("^all done$")
    assert (
        len(re.findall(r"· warning: watchman did not answer within 0.2 s \(asked about tool_call\)", zot.screen())) == 1
    )
    assert (world.cwd / "made").exists() == (on_failure == "open")
    assert ("watchman" in world.model.seen()) == (on_failure == "closed")


# --- 38 ----------------------------------------------------------------------------------------------------------

PANEL = """
    def key(key, text):
        if text == "x":
            os._exit(1)
        panel.render([f"key {key} {text}"])

    def size(columns, rows):
        panel.render([f"{columns} columns"])

    panel = Panel("p", "Counting", ["start"], footer="x crashes", on_key=key, on_resize=size)

    @ext.command("count")
    def count(args):
        return OpenPanel(panel)
"""


@journey(38)
def test_a_panel_has_the_keys_and_its_room_until_it_is_closed_or_crashes(world):
    extension(world, "counter", PANEL)
    zot = world.zot()
    ask(zot, "/count")
    zot.wait("^99 columns$")
    zot.wait("^x crashes$")
    assert re.search("^Counting  counter", zot.screen(), re.MULTILINE)
    assert "❯" not in zot.screen()
    zot.resize(70, 20)
    zot.wait("^69 columns$")
    zot.key("Down")
    zot.wait("^key down ?$")
    zot.type("q")
    zot.wait("^key rune q$")
    zot.key("Escape")
    ask(zot, "/count")
    zot.wait("^x crashes$")
    zot.type("x")
    zot.wait("counter exited with code 1")
    zot.wait("counter closed its panel")
    zot.wait(PROMPT)
    zot.type("a draft")
    zot.wait("^❯ a draft$")
