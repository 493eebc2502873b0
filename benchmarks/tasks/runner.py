"""Gives one task to an agent in a directory of its own, and checks what it has done."""

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec import Struct

from benchmarks.tasks.task import Task
from zot import Agent, AgentError, AgentOptions, RunResult
from zotd.testing.model_server import ModelServer
from zotd.testing.script import CallPart, calls, text

TASK_S = 900.0
"""Time limit of an agent for one task, in seconds."""

CHECK_S = 60.0
"""Time limit of a check, and of what prepares a task."""

MAX_STEPS = 60
"""Most model requests for one task."""


class TaskOutcome(Struct, frozen=True):
    """What became of a task."""

    task: str
    solved: bool
    steps: int
    """Model requests that led to a reply."""
    calls: int
    """Tool calls."""
    cost_usd: float
    seconds: float
    reason: str = ""
    """Why it is not solved: the last line of the check, or what happened to the agent."""


async def run_task(task: Task, options: AgentOptions | None) -> TaskOutcome:
    """Have an agent do a task.

    Args:
        task: the task.
        options: of the agent, with its model; None: the scripted model, which makes the calls of the solution.
    """
    with tempfile.TemporaryDirectory(prefix=f"zot-task-{task.name}-") as folder:
        place = await asyncio.to_thread(lay_out, task, Path(folder))
        began, result, problem = time.perf_counter(), None, ""
        try:
            async with asyncio.timeout(TASK_S):
                result = await _work(task, place, options)
        except AgentError as error:
            problem = str(error)
        except TimeoutError:
            problem = f"the agent was not done within {TASK_S:g} s"
        seconds = time.perf_counter() - began
        reason = await asyncio.to_thread(fault, task, place)
    return TaskOutcome(
        task.name,
        solved=not reason,
        steps=sum(message.role == "assistant" for message in result.messages) if result else 0,
        calls=len(result.calls) if result else 0,
        cost_usd=result.cost_usd if result else 0.0,
        seconds=seconds,
        reason=(problem or reason) if reason else "",
    )


def lay_out(task: Task, folder: Path) -> Path:
    """Put the files of a task into a directory below `folder`, prepare it, and return its real path."""
    place = folder.resolve() / "work"
    place.mkdir()
    _home(place).mkdir()
    for name, content in task.files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf-8")
    if task.prepare:
        subprocess.run(["sh", "-c", task.prepare], cwd=place, env=_env(place), check=True, timeout=CHECK_S)  # noqa: S603, S607
    return place


def fault(task: Task, place: Path) -> str:
    """Return why the task is not done, in a line; empty: it is."""
    command = [sys.executable, "-B", "-X", "utf8", "-c", task.check]
    env = {**_env(place), "PYTHONPATH": str(place)}
    try:
        done = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, check=False, timeout=CHECK_S)  # noqa: S603
    except subprocess.TimeoutExpired:
        return f"the check was not done within {CHECK_S:g} s"
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return "" if done.returncode == 0 else (lines[-1].strip() if lines else f"the check ended with {done.returncode}")


async def _work(task: Task, place: Path, options: AgentOptions | None) -> RunResult[str]:
    async with _model(task, options) as chosen:
        complete = AgentOptions(cwd=place, mode="workspace", env=_env(place), max_steps=MAX_STEPS)
        complete.update(chosen)
        async with Agent(**complete) as agent:
            return await agent.run(task.prompt)


@asynccontextmanager
async def _model(task: Task, options: AgentOptions | None) -> AsyncIterator[AgentOptions]:
    if options is not None:
        yield options
        return
    answers = [*(calls(CallPart(name, args)) for name, args in task.solution), text("Done.")]
    async with ModelServer(answers) as server:
        yield AgentOptions(provider="openai", base_url=server.openai_url, api_key="scripted")


def _home(place: Path) -> Path:
    return place.with_name("home")


def _env(place: Path) -> Mapping[str, str]:
    # Nothing of the user's: git has no configuration, Python no modules of others.
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(_home(place)), "GIT_CONFIG_NOSYSTEM": "1", "PYTHONDONTWRITEBYTECODE": "1"}
