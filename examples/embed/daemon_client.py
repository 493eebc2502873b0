"""A session of the daemon, which is started when none runs: the session is still there when this program has ended.

python daemon_client.py "fix the failing test"
"""

import argparse
import asyncio
import sys

from zotd.client.client import Client
from zotd.client.errors import ClientError
from zotd.client.session import Session
from zotd.wire import events


async def main() -> int:
    """Answer one prompt; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prompt")
    for name in ("provider", "model", "base-url", "api-key"):
        parser.add_argument(f"--{name}")
    options = {name: value for name, value in vars(parser.parse_args()).items() if value is not None}
    prompt = options.pop("prompt")
    try:
        async with Client.connect(name="daemon_client") as client:
            session = await client.create(".", **options)
            failed = await answer(session, prompt)
            print(f"\ngo on with: zot --resume {session.id}", file=sys.stderr)
            return failed
    except ClientError as error:
        sys.exit(str(error))


async def answer(session: Session, prompt: str) -> int:
    """Show what the agent says."""
    failed = 0
    async for event in session.prompt(prompt):
        if isinstance(event, events.TextDelta):
            print(event.delta, end="", flush=True)
        elif isinstance(event, events.Error):
            print(event.message, file=sys.stderr)
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
