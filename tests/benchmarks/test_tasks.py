"""The tasks that are given to agents: what their checks accept, and what not."""

import asyncio
import json
import sys
from pathlib import Path

import pytest

from benchmarks.tasks.catalog import TASKS
from benchmarks.tasks.runner import fault, lay_out, run_task
from tests.needs import needs
from zot import AgentOptions
from zotd.testing.live_daemon import ROOT
from zotd.testing.model_server import ModelServer
from zotd.testing.script import text

BY_NAME = {task.name: task for task in TASKS}

HALF_DONE = {
    "bug": {"ranges.py": BY_NAME["bug"].files["ranges.py"].replace("begin <", "begin <=")},
    "rename": {"shop/prices.py": BY_NAME["rename"].files["shop/prices.py"].replace("calc", "net_price")},
    "log": {"worst.txt": "10.0.0.2\n"},
    "csv": {"people.csv": "name,email,cities\n"},
    "conflict": {"hello.py": 'def hello(name, mark="!"):\n    return "Good morning " + name + mark\n'},
    "culprit": {"culprit.txt": "HEAD~3\n"},
    "script": {"backup": "#!/bin/sh\ntar -czf $2 $1\n"},
    "tests": {
        "test_parse.py": "import unittest\n\nclass Nothing(unittest.TestCase):\n    def test(self):\n        pass\n"
    },
    "make": {"Makefile": ".PHONY: report.txt\nreport.txt:\n\tcat header.txt notes.txt > report.txt\n"},
    "config": {"settings.toml": 'title = "Shop"\n'},
}


@pytest.fixture(autouse=True)
def programs():
    needs("git", "make", "bwrap")


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_a_task_is_not_done_before_it_was_begun_nor_when_it_is_half_done(task, tmp_path):
    place = lay_out(task, tmp_path)
    assert fault(task, place)
    for name, content in HALF_DONE[task.name].items():
        (place / name).write_text(content)
        (place / name).chmod(0o755)
    assert fault(task, place)


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
async def test_the_scripted_model_solves_each_task_in_the_steps_of_its_solution(task):
    outcome = await run_task(task, None)
    assert (outcome.solved, outcome.reason) == (True, "")
    assert (outcome.steps, outcome.calls) == (len(task.solution) + 1, len(task.solution))


async def test_a_model_that_only_talks_solves_nothing_and_the_reason_is_named():
    async with ModelServer([text("I would correct it.")]) as server:
        options = AgentOptions(provider="openai", base_url=server.openai_url, api_key="k")
        outcome = await run_task(BY_NAME["log"], options)
    assert (outcome.solved, outcome.steps, outcome.calls) == (False, 1, 0)
    assert "worst.txt" in outcome.reason


async def test_the_agent_does_not_see_the_check(tmp_path):
    place = await asyncio.to_thread(lay_out, BY_NAME["log"], tmp_path)
    names = await asyncio.to_thread(lambda: [path.name for path in Path(place).rglob("*")])
    assert names == ["access.log"]


async def test_the_command_prints_a_row_of_json_for_each_task():
    command = [sys.executable, "-m", "benchmarks.tasks", "--only", "log", "make", "--json"]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stdout=asyncio.subprocess.PIPE)
    async with asyncio.timeout(120):
        output, _ = await process.communicate()
    rows = [json.loads(line) for line in output.splitlines()]
    assert [(row["task"], row["solved"]) for row in rows] == [("log", True), ("make", True)]
    assert process.returncode == 0
