"""Ten questions at once, each with an agent of its own."""

import asyncio

from zot import Agent, RunResult


async def main() -> None:
    """Ask about ten files."""
    async with asyncio.TaskGroup() as tasks:
        runs = [tasks.create_task(Agent().run(f"Summarise chapter-{number}.md")) for number in range(10)]
    results: list[RunResult[str]] = [run.result() for run in runs]
    print(*(result.text for result in results), sep="\n")


asyncio.run(main())
