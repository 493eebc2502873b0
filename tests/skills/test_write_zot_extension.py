"""What the skill `write-zot-extension` tells the model is true: its sources run, its commands work, its frames are frames."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import zotd
from tests.needs import needs
from zotd.core.registry import INTERCEPTS
from zotd.exthost.contributions import BUILTIN_TOOLS
from zotd.exthost.validation import questions
from zotd.template.client import SWITCH
from zotd.testing.ext_driver import ExtensionDriver, text_of
from zotd.tools.skill import find_skills
from zotd.wire import ext

SKILLS = Path(zotd.__file__).parent / "skills"
TEXT = (SKILLS / "write-zot-extension" / "SKILL.md").read_text()
BIN = Path(sys.executable).parent

RUN_S = 60
"""For one command; `validate` takes two seconds on an idle core."""


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


MODULE, SDK = blocks("python")


@pytest.fixture
def project(tmp_path):
    """A project with the skill's Python module in it."""
    project = tmp_path / "project"
    module = project / ".zot" / "extensions" / "tools" / "word_count.py"
    module.parent.mkdir(parents=True)
    module.write_text(MODULE)
    (project / "notes.txt").write_text("one two\n")
    return project


def run(command, cwd):
    path = os.pathsep.join([str(BIN), os.environ["PATH"]])
    env = {"PATH": path, "HOME": str(cwd.parent), "PYTHONPATH": str(SKILLS.parent.parent), SWITCH: "off"}
    ended = subprocess.run(command, shell=True, cwd=cwd, env=env, capture_output=True, check=False, timeout=RUN_S)
    return ended.returncode, ended.stdout.decode() + ended.stderr.decode()


def test_the_model_is_offered_the_skill():
    [found] = [skill for skill in find_skills([str(SKILLS)]) if skill.name == "write-zot-extension"]
    assert found.description.startswith("How to extend zot")


def test_every_command_works_in_the_order_of_the_text(project):
    for block in blocks("sh"):
        for command in block.splitlines():
            code, out = run(command, project)
            assert (command, code) == (command, 0), out
    assert (project / ".zot" / "extensions" / "review").resolve() == project.parent / "src" / "review"


def test_the_extension_with_the_sdk_keeps_to_the_protocol_and_works(project):
    assert run("zotctl ext new release --lang py", project)[0] == 0
    (project / "release" / "main.py").write_text(SDK)
    code, out = run("zotctl ext validate release --call", project)
    assert code == 0, out

    with ExtensionDriver([sys.executable, "main.py"], cwd=project / "release") as driver:
        driver.greet()
        assert text_of(driver.call_tool("tag", version="1.2.3")) == "tagged 1.2.3"
        assert driver.call_tool("tag", version="one")["is_error"] is True
        assert driver.run_command("release", "1.2.3")["prompt"] == "Make the release 1.2.3."
        assert driver.run_command("release")["action"] == "display"

        def is_blocked(command):
            asked = {"tool_id": "c", "tool_name": "bash", "tool_args": {"command": command}}
            return driver.intercept("tool_call", **asked).get("block", False)

        assert [is_blocked("git push --force"), is_blocked("git push")] == [True, False]


def test_the_frames_of_the_beginning_make_an_extension(project):
    [frames] = blocks("jsonl")
    directory = project / "by-hand"
    directory.mkdir()
    (directory / "extension.json").write_text('{"name": "release", "exec": "./main.sh"}')
    (directory / "main.sh").write_text(f"#!/bin/sh\ncat <<'FRAMES'\n{frames}FRAMES\n" + ANSWER)
    (directory / "main.sh").chmod(0o755)
    needs("jq")
    code, out = run("zotctl ext validate by-hand --call", project)
    assert code == 0, out


ANSWER = """
while IFS= read -r frame; do
    case $(printf '%s' "$frame" | jq -r .type) in
    event_intercept) type=event_intercept_response ;;
    tool_call) type=tool_result ;;
    command_invoked) type=command_response ;;
    shutdown) exit ;;
    *) continue ;;
    esac
    printf '%s' "$frame" | jq -c --arg type "$type" '{$type, id}'
done
"""


def test_the_answers_that_are_shown_are_frames():
    shown = re.findall(r'`(\{"type":.*?\})`', TEXT)
    read = [ext.read(answer.encode()) for answer in shown]
    assert [type(frame) for frame in read] == [
        ext.ToolResult,
        ext.CommandResponse,
        ext.EventInterceptResponse,
        ext.Notify,
    ]


def test_the_words_that_are_listed_are_those_of_the_host():
    assert f"`{' '.join(BUILTIN_TOOLS)}` are taken" in TEXT
    [events] = re.findall(r"^Events: (.*?)\.", TEXT, re.MULTILINE)
    assert set(json.loads(f"[{events.replace('`', chr(34))}]")) <= questions.EVENTS.keys()
    assert set(re.findall(r'"intercept":\["(\w+)"\]', TEXT)) <= set(INTERCEPTS)
