"""An agent inside a program without asyncio: asks it two things about one directory. Ctrl-C ends a run, not the program.

python blocking_runtime.py "what is in this directory?" "which of it is the largest?"
"""

import argparse
import sys

from zotd.embed.blocking import BlockingRuntime
from zotd.wire import events
from zotd.wire.errors import CommandError


def main() -> int:
    """Answer every prompt; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prompts", nargs="+")
    for name in ("provider", "model", "base-url", "api-key", "cwd"):
        parser.add_argument(f"--{name}")
    options = vars(parser.parse_args())
    prompts = options.pop("prompts")
    try:
        with BlockingRuntime(options) as runtime:
            return max(answer(runtime, prompt) for prompt in prompts)
    except CommandError as error:
        sys.exit(error.sentence)


def answer(runtime: BlockingRuntime, prompt: str) -> int:
    """Show what the agent says."""
    failed = 0
    try:
        for event in runtime.prompt(prompt):
            if isinstance(event, events.TextDelta):
                print(event.delta, end="", flush=True)
            elif isinstance(event, events.Error):
                print(event.message, file=sys.stderr)
                failed = 1
    except KeyboardInterrupt:
        print("(stopped)", file=sys.stderr)
        failed = 130
    print()
    return failed


if __name__ == "__main__":
    sys.exit(main())
