"""The answer while it is written."""

import asyncio

from zot import Agent, events


async def main() -> None:
    """Print each piece of text."""
    async for event in Agent().stream("What does this project do?"):
        if isinstance(event, events.TextDelta):
            print(event.delta, end="", flush=True)


asyncio.run(main())
