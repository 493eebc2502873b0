"""Text from outside does nothing to the terminal that shows it: every surface with every sequence."""

import json
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import zotd
from tests.attacks.sequences import BLOB, RUN, SEQUENCES, WORDS, failures, is_steering, lying_daemon
from tests.needs import needs
from tests.zottui.editor.keyboard import typing
from tests.zottui.fake_ui import FakeUi
from zotd.sanitize import coloured, escaped, harmless, json_line
from zotd.testing import warm
from zotd.wire.events import ApprovalRequested
from zottui.blocks import Block, CodeLines, NoteLine, Prose, Rule, Thought, ToolRan, UserSaid
from zottui.dialogs.approval import Approval
from zottui.render import render
from zottui.terminal import sequences
from zottui.theme import DARK, PLAIN
from zottui.widgets.cells import clean, folded

ROOT = str(Path(zotd.__file__).parent.parent)
LIMIT_S = 40

DONE = [{"type": "done", "run": "r_1", "seq": 5}]
FAILED = [{"type": "error", "message": BLOB, "seq": 5}, *DONE]
REFUSED = {"success": False, "error": BLOB, "code": "conflict"}
UNTRUSTED = {"data": {"workspaces": [{"path": BLOB, "state": "untrusted", "digest": "d", "items": WORDS}]}}
FLEET = {"fleet.list": {"data": {"daemons": [{"name": word, "address": word} for word in WORDS]}}}
RESULT = {"place": 1, "number": 1, "state": "done", "text": BLOB, "error": BLOB}
RESULTS = {"batch.results": {"data": {"results": [RESULT], "left": 0, "ended": 1}}}


@dataclass(frozen=True)
class Surface:
    """A program on a terminal."""

    arguments: str
    answers: dict[str, dict[str, object]] = field(default_factory=dict)
    ending: list[dict[str, object]] = field(default_factory=lambda: DONE)
    closes_after: str | None = None
    typed: bytes = b""
    goes_on: bool = False
    """It does not end by itself."""


def zotctl(arguments, **more):
    return Surface(f"zotctl {arguments}", **more)


def zot(arguments, **more):
    return Surface(f"zotd.cli {arguments}", **more)


SURFACES = {
    "sessions": zotctl("sessions"),
    "sessions as JSON": zotctl("sessions --json"),
    "queue": zotctl("queue --session s_1"),
    "approvals": zotctl("approvals"),
    "channels": zotctl("channel list"),
    "a sender who is let in": zotctl("channel pair CODE"),
    "search": zotctl("search word"),
    "branches": zotctl("tree --session s_1"),
    "usage": zotctl("usage"),
    "extensions": zotctl("ext list"),
    "what is wrong with extensions": zotctl("ext doctor"),
    "the log of an extension": zotctl("ext logs x"),
    "frames of an extension": zotctl("ext tap x", closes_after="ext.tap"),
    "frames of an extension as JSON": zotctl("ext tap x --json", closes_after="ext.tap"),
    "trusted directories": zotctl("trust list"),
    "what would be trusted": zotctl("trust grant .", answers={"trust.list": UNTRUSTED}, typed=b"n\n"),
    "top": zotctl("top --once"),
    "fleet top": zotctl("fleet top --once", answers=FLEET),
    "fleet status": zotctl("fleet status", answers=FLEET),
    "fleet results": zotctl("fleet results b", answers=RESULTS),
    "zot -p --fleet": zot("-p --fleet x", answers=RESULTS),
    "tokens": zotctl("token list"),
    "metrics": zotctl("metrics"),
    "the log of a session": zotctl("log --session s_1"),
    "the log of a session as JSON": zotctl("log --session s_1 --json"),
    "attach": zotctl("attach --plain --session s_1", closes_after="attach"),
    "export": zotctl("export --session s_1"),
    "the reply that send waits for": zotctl("send --session s_1 hello --wait"),
    "the answer of a slash command": zotctl("send --session s_1 /shout"),
    "the mode of a session": zotctl(
        "mode --session s_1", answers={"session.get": {"data": {"id": "s_1", "mode": BLOB}}}
    ),
    "a refusal": zotctl("usage", answers={"usage.report": REFUSED}),
    "reload": zotctl("reload"),
    "completion": zotctl("candidates zotctl -- log --session <"),
    "models": zot("--list-models"),
    "the answer of zot -p": zot("-p hello"),
    "notices of zot -p": zot("-p hello", ending=[], goes_on=True),
    "a failed zot -p": zot("-p hello", ending=FAILED),
    "events of zot --json": zot("--json hello"),
    "the picker of --resume": zot("--resume -p hello", typed=b"1\n"),
    "the plain chat": zot("--plain hello", goes_on=True),
    "zot rpc that is refused": zot("rpc --session s_1", answers={"session.get": REFUSED}),
}


def shown_by(surface, tmp_path):
    """All that a program writes on its terminal until it ends, or has shown everything."""
    path = str(tmp_path / "s")
    env = {"ZOTD_SOCKET": path, "ZOT_HOME": str(tmp_path / "home"), "PYTHONPATH": ROOT, "PATH": os.environ["PATH"]}
    env |= {"TERM": "xterm", "HOME": str(tmp_path), "COLUMNS": "5000"}
    screen, terminal = pty.openpty()
    controlling = f"import fcntl, os, runpy, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); {RUNS}"
    shown, end = b"", time.monotonic() + LIMIT_S
    with (
        lying_daemon(path, ending=surface.ending, answers=surface.answers, closes_after=surface.closes_after),
        subprocess.Popen(
            [sys.executable, "-c", controlling, *surface.arguments.split()],
            cwd=tmp_path,
            env=env,
            start_new_session=True,
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
        ) as process,
    ):
        os.close(terminal)
        os.write(screen, surface.typed)
        try:
            while time.monotonic() < end and not (surface.goes_on and all_seen(shown)):
                if select.select([screen], [], [], 1)[0]:
                    shown += os.read(screen, 65536)
        except OSError:  # it has ended
            pass
        finally:
            process.kill()
            os.close(screen)
    return shown.decode()


RUNS = (
    "import zotctl.completion_engine as engine; engine.CONNECT_S = engine.ASK_S = 20;"  # a busy machine must not hide it
    " sys.argv = sys.argv[1:]; runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)


def all_seen(shown):
    return shown.count(f"<{len(SEQUENCES) - 1}:".encode()) >= len(RUN) // len(SEQUENCES)


BLOCKS: dict[str, list[Block]] = {
    "prompts": [UserSaid(word, sender=word) for word in WORDS],
    "replies": [Prose(word) for word in WORDS],
    "code": [CodeLines(word.replace(":", " "), (word,), opens=True, closes=True) for word in WORDS],
    "thoughts": [Thought(1, word) for word in WORDS],
    "calls": [ToolRan(word, {"command": word}, word, extension=word) for word in WORDS],
    "failed calls": [ToolRan("bash", {"command": word}, word, is_error=True) for word in WORDS],
    "notes": [NoteLine(word, source=word) for word in WORDS],
    "rules": [Rule(word) for word in WORDS],
}


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("theme", [DARK, PLAIN], ids=["colours", "plain"])
def test_no_sequence_reaches_the_scrollback_through(kind, theme):
    shown = "\n".join(line for block in BLOCKS[kind] for line in render(block, 200, theme))
    assert failures(shown) == {}


def test_no_sequence_reaches_the_title_a_notification_or_a_cell():
    titles = "\n".join(sequences.title(word).removeprefix("\x1b]0;").removesuffix(sequences.ST) for word in WORDS)
    assert failures(titles) == {}
    env = {"TERM": "xterm", "TERM_PROGRAM": "WezTerm"}
    for word in WORDS:
        note = sequences.notification(word, env).removesuffix(sequences.BELL)
        assert not any(map(is_steering, note.removeprefix("\x1b]9;").removesuffix(sequences.ST)))
    assert failures("\n".join(map(clean, WORDS))) == {}
    assert failures("\n".join(row for word in WORDS for row in folded(word, 100))) == {}


async def test_no_sequence_reaches_the_terminal_through_a_question_about_a_call():
    async with FakeUi() as fake_ui:
        for word in WORDS:
            question = ApprovalRequested("a", "t", word, {"x": word}, "d", preview=word, rule=word)
            rows = Approval(fake_ui, question, lambda: None).rows(200, 20)
            shown = "".join(text for row in rows for _, text in row)
            assert not any(map(is_steering, shown)), ascii(word)


async def test_no_sequence_reaches_the_terminal_through_the_editor():
    async with typing() as editor:
        for word in WORDS:
            editor.editor.text = word
            shown = "".join(text for _, text, *_ in editor.editor.control.create_content(200, 8).get_line(0))
            assert shown.startswith("<")
            assert not any(map(is_steering, shown)), ascii(word)
            assert editor.text == word.replace("\ud83d", "\ufffd")


def test_no_sequence_reaches_the_log():
    assert failures("\n".join(map(escaped, WORDS))) == {}


def test_json_that_is_shown_is_the_same_value():
    for word in WORDS:
        shown = json_line(json.dumps({"a": word}, ensure_ascii=False))
        assert not any(map(is_steering, shown))
        assert json.loads(shown) == {"a": word}


def test_the_page_shows_what_a_terminal_shows(tmp_path):
    needs("node")
    shutil.copytree(Path(ROOT, "zotd", "api", "page"), tmp_path, dirs_exist_ok=True)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    words = [*WORDS, BLOB, *BENIGN, "a\u200c", "\u200d", "x\ufe0f\ufe0fy", "tab\tand\r\nline", "\x1b[31mred\x1b[0m"]
    (tmp_path / "all.mjs").write_text(
        'import { harmless } from "./harmless.js"; import { readFileSync } from "node:fs";\n'
        "console.log(JSON.stringify(JSON.parse(readFileSync(0)).map(harmless)));\n"
    )
    done = subprocess.run(
        ["node", "all.mjs"], cwd=tmp_path, input=json.dumps(words), capture_output=True, text=True, check=False
    )
    assert json.loads(done.stdout) == [harmless(word) for word in words], done.stderr


LINES = st.lists(
    st.sampled_from(
        ["\x1b[31m", "\x1b[1;8;5m", "\x1b[38;5;999m", "\x1b[38;2;1m", "\x1b[4:3m", "\x1b[m", "\x1b[99m", "\u200d", "a"]
    )
    | st.text(st.characters(exclude_characters="\n\t"), max_size=5)
).map("".join)


@given(LINES)
def test_a_coloured_line_is_the_harmless_one_with_nothing_but_colours_between(line):
    pieces, looks = coloured(line)
    assert "".join(text for _, text in pieces) == harmless(line)
    again, _ = coloured("x", looks)
    for parameters, _ in [*pieces, *again]:
        assert re.fullmatch(r"(\d{1,3}(;\d{1,3})*)?", parameters)
        assert not {"5", "6", "8"} & set(re.sub("[34]8;(5;[0-9]+|2;[0-9]+;[0-9]+;[0-9]+)", "", parameters).split(";"))


BENIGN = [
    "tab\tline\n",
    "\U0001f469\u200d\U0001f4bb",  # an emoji of two
    "\u0645\u06cc\u200c\u062e\u0648",  # Persian
    "PDF\u200c\u0647\u0627",
    "\u2764\ufe0f\u200d\U0001f525",
    "e\u0301",
    "\u65e5\u672c",
]


@pytest.mark.parametrize("text", BENIGN)
def test_text_that_people_write_stays(text):
    assert harmless(text) == text


@pytest.mark.parametrize("program", ["zotd.cli -p hello", "zotctl send --session s_1 hello --wait"])
def test_a_pipe_gets_every_character_of_an_answer(program, tmp_path):
    path = str(tmp_path / "s")
    env = {"ZOTD_SOCKET": path, "ZOT_HOME": str(tmp_path), "PYTHONPATH": ROOT, "PATH": os.environ["PATH"]}
    command = warm.command(*program.split())
    with lying_daemon(path, ending=DONE):
        ran = subprocess.run(
            command, cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=LIMIT_S, check=True
        )
    assert ran.stdout == BLOB.encode(errors="replace") + b"\n"


def test_there_are_thirty_surfaces_and_forty_sequences():
    assert len(SURFACES) >= 30
    assert len(set(SEQUENCES)) == 40


@pytest.mark.parametrize("surface", SURFACES)
def test_no_sequence_reaches_the_terminal_through(surface, tmp_path):
    shown = shown_by(SURFACES[surface], tmp_path)
    assert failures(shown) == {}, shown[-3000:]
