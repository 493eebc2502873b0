"""An agent inside an asyncio program: prints the answer as it comes, and what it cost.

python async_runtime.py "what is in this directory?"
"""

import argparse
import asyncio
import sys

from zotd.embed.runtime import Runtime
from zotd.wire import events
from zotd.wire.errors import CommandError


async def main() -> int:
    """Answer one prompt; the exit code."""
    prompt, options = arguments()
    try:
        async with Runtime.open(options) as runtime:
            failed = await answer(runtime, prompt)
            print(f"\n{runtime.usage.input} tokens read, {runtime.usage.output} written", file=sys.stderr)
            return failed
    except CommandError as error:
        sys.exit(error.sentence)


async def answer(runtime: Runtime, prompt: str) -> int:
    """Show what happens."""
    failed = 0
    async for event in runtime.prompt(prompt):
        match event:
            case events.TextDelta(delta):
                print(delta, end="", flush=True)
            case events.ToolCallEvent(_, name, args):
                print(f"\n[{name} {args}]", file=sys.stderr)
            case events.Error(message):
                print(f"\n{message}", file=sys.stderr)
                failed = 1
            case _:
                pass  # there are more: see docs/protocol.md
    return failed


def arguments() -> tuple[str, dict[str, object]]:
    """The prompt, and options for `Runtime.open`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prompt")
    for name in ("provider", "model", "base-url", "api-key", "cwd"):
        parser.add_argument(f"--{name}")
    given = vars(parser.parse_args())
    return given.pop("prompt"), given


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
