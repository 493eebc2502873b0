"""zot as an agent of Harbor: a whole trial in the published package, with a scripted model, and without a container engine."""

import asyncio
import json
import os
import subprocess
import sys
from asyncio.subprocess import PIPE, STDOUT
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.needs import needs
from zotd.testing.live_daemon import ROOT
from zotd.testing.model_server import ModelServer
from zotd.testing.script import CallPart, Refusal, calls, text
from zotd.wire.content import Tokens
from zotd.wire.version import VERSION

HARBOR = Path(sys.executable).parent.parent / "harbor/bin/harbor"
"""`make harbor`."""

BUILD = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"

TRIAL_S = 240.0
"""Longest wait for a trial; importing Harbor takes seconds."""

pytestmark = pytest.mark.timeout(TRIAL_S + 60)

TASK = """
[metadata]
difficulty = "easy"

[agent]
timeout_sec = 120

[verifier]
timeout_sec = 60

[environment]
allow_internet = true
"""

INSTRUCTION = """Write what is in `question.txt` to answer.txt; it isn't "hard": $HOME."""

CHECK = """#!/bin/bash
if grep -qx 'seven "geese"' /app/answer.txt; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""


@pytest.fixture
def task(tmp_path):
    """A task of Harbor: a word of a file has to be copied to another one."""
    folder = tmp_path / "geese"
    for name, content in {
        "task.toml": TASK,
        "instruction.md": f"{INSTRUCTION}\n",
        "environment/question.txt": 'seven "geese"\n',
        "tests/test.sh": CHECK,
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


@pytest.fixture
def trial(task, tmp_path):
    """`await trial(*replies)`: runs the task with a model that says this; the result of the trial, and what the model was asked."""
    needs("bwrap", "bash")
    if not HARBOR.exists():
        pytest.skip("this machine has no harbor: make harbor")

    async def trial(*replies, wheel=None):
        async with ModelServer(list(replies)) as server:
            words = ["run", "--path", task, "--jobs-dir", tmp_path / "jobs", "--yes", "--quiet"]
            words += ["--agent", "benchmarks.tasks.harbor_agent:Zot"]
            words += ["--agent-kwarg", "skip_install=true"] if wheel is None else ["--agent-env", f"ZOT_WHEEL={wheel}"]
            words += ["--model", "openai/gpt-5.6-sol", "--base-url", server.openai_url]
            words += ["--env", "tests.benchmarks.harbor_environment:BubblewrapEnvironment"]
            env = os.environ | {"HOME": str(tmp_path), "PYTHONPATH": str(ROOT), "OPENAI_API_KEY": "sk-1"}
            process = await asyncio.create_subprocess_exec(
                HARBOR, *map(str, words), cwd=ROOT, env=env, stdout=PIPE, stderr=STDOUT
            )
            async with asyncio.timeout(TRIAL_S):
                out, _ = await process.communicate()
        found = list((tmp_path / "jobs").glob("*/geese*/result.json"))
        assert len(found) == 1, out.decode()
        return json.loads(found[0].read_text()), server.requests

    return trial


async def test_a_task_is_solved_and_its_tokens_are_counted(trial):
    copies = calls(CallPart("bash", {"command": "cp question.txt answer.txt"}))
    used = Tokens(input=100, output=10, cache_read=40)
    result, requests = await trial(replace(copies, usage=used), replace(text("done"), usage=used))
    assert result["verifier_result"]["rewards"] == {"reward": 1.0}
    assert requests[0].messages[-1]["content"] == INSTRUCTION
    agent = result["agent_result"]
    assert (agent["n_input_tokens"], agent["n_cache_tokens"], agent["n_output_tokens"]) == (280, 80, 20)
    assert agent["cost_usd"] > 0
    assert result["agent_info"]["name"] == "zot"


async def test_a_run_that_fails_is_an_error_of_the_trial(trial):
    result, _ = await trial(Refusal(401, "no such key"))
    assert "NonZeroAgentExitCode" in result["exception_info"]["exception_type"]
    assert result["verifier_result"]["rewards"] == {"reward": 0.0}


@pytest.fixture
def wheel(tmp_path):
    subprocess.run([sys.executable, "-c", BUILD, tmp_path], cwd=ROOT, check=True, timeout=TRIAL_S)
    return next(tmp_path.glob("*.whl"))


async def test_it_is_installed_where_a_task_is(trial, wheel):
    result, _ = await trial(text("I have no idea."), wheel=wheel)
    assert result["exception_info"] is None
    assert result["agent_info"]["version"] == VERSION
    assert result["verifier_result"]["rewards"] == {"reward": 0.0}
