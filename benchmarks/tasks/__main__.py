"""Gives ten small tasks to an agent: `python -m benchmarks.tasks`.

    python -m benchmarks.tasks                                   the scripted model: whether zot and the tasks work
    python -m benchmarks.tasks --model anthropic/claude-opus-5   a real one, with your key
    python -m benchmarks.tasks --only bug make --json            some of them, a JSON object a line

Commands of the model run in a jail of the task's directory, where one is possible; what leads out of it is denied. The exit code is 1
if a task is not solved.
"""

import argparse
import asyncio
import sys

import msgspec

from benchmarks.tasks.catalog import TASKS
from benchmarks.tasks.runner import TaskOutcome, run_task
from benchmarks.tasks.task import Task
from zot import AgentOptions


def main() -> int:
    """Run the tasks one after the other, so that their times can be compared."""
    arguments = _parser().parse_args()
    options = None
    if arguments.model is not None:
        options = AgentOptions(model=arguments.model, budget_usd=arguments.budget_usd)
        if arguments.base_url is not None:
            options["base_url"] = arguments.base_url
    chosen = [task for task in TASKS if not arguments.only or task.name in arguments.only]
    return asyncio.run(_run(chosen, options, as_json=arguments.json))


async def _run(tasks: list[Task], options: AgentOptions | None, *, as_json: bool) -> int:
    found: list[TaskOutcome] = []
    if not as_json:
        print(f"{'task':10}  {'solved':6}  {'steps':>5}  {'calls':>5}  {'cost':>8}  {'time':>7}")
    for task in tasks:
        outcome = await run_task(task, options)
        found.append(outcome)
        print(msgspec.json.encode(outcome).decode() if as_json else _row(outcome), flush=True)
    if not as_json:
        solved = sum(one.solved for one in found)
        total = f"{solved} of {len(found)}"
        steps, calls = sum(one.steps for one in found), sum(one.calls for one in found)
        cost, seconds = sum(one.cost_usd for one in found), sum(one.seconds for one in found)
        print(f"{'all':10}  {total:6}  {steps:5}  {calls:5}  {cost:8.4f}  {seconds:6.1f}s")
    return 0 if all(one.solved for one in found) else 1


def _row(one: TaskOutcome) -> str:
    figures = f"{one.steps:5}  {one.calls:5}  {one.cost_usd:8.4f}  {one.seconds:6.1f}s"
    return f"{one.task:10}  {'yes' if one.solved else 'no':6}  {figures}{f'  {one.reason}' if one.reason else ''}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tasks", description="Ten small tasks for an agent.")
    parser.add_argument("--model", metavar="PROVIDER/MODEL", help="default: a scripted model that knows the solutions")
    parser.add_argument("--base-url", metavar="URL", help="a server with the provider's API")
    parser.add_argument(
        "--budget-usd", type=float, default=1.0, metavar="USD", help="most that one task may cost; default: 1"
    )
    parser.add_argument("--only", nargs="+", choices=[task.name for task in TASKS], metavar="TASK", help="these tasks")
    parser.add_argument("--json", action="store_true", help="print a JSON object for each task")
    return parser


if __name__ == "__main__":
    sys.exit(main())
