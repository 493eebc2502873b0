"""One answer, and what it cost."""

import asyncio

from zot import Agent


async def main() -> None:
    """Ask about the current directory."""
    result = await Agent().run("What does this project do?")
    print(result.text)
    print(f"{len(result.calls)} tool calls, ${result.cost_usd:.4f}")


asyncio.run(main())
