"""`zot rpc`: an agent as a subprocess, for programs in any language (docs/protocol.md).

A process runs one session that is not stored. It exits when standard input is closed and the work in progress is done.
"""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from functools import cache

from zotd import config, malloc_tuning
from zotd.api.dispatch import Dispatcher
from zotd.api.methods import HANDLERS
from zotd.api.stdio import StdioDoor
from zotd.core.permissions import MODES
from zotd.embed.session_runtime import Runtime
from zotd.key_flags import add_key_flags
from zotd.process.subreaper import orphans_adopted
from zotd.sanitize import harmless
from zotd.stdio import open_output, read_input
from zotd.wire.errors import CommandError

TOKEN = "ZOTCORE_RPC_TOKEN"  # noqa: S105  (the variable's name)

TRUST = "ZOT_TRUST"
"""Set to `1` to run the project's own extensions."""

FAILED = 1

FLUSH_S = 5.0
"""How long a terminated process waits for its parent to read the remaining output."""


def main(argv: Sequence[str]) -> int:
    """Run `zot rpc`; `argv` does not contain the word `rpc`. Returns the exit code."""
    options = vars(parser().parse_args(argv))
    malloc_tuning.tune_malloc()
    env = {**os.environ, TRUST: "1"} if options.pop("trust") else dict(os.environ)
    try:
        return asyncio.run(_serve({name: value for name, value in options.items() if value is not None}, env))
    except CommandError as error:
        sys.stderr.write(f"zot: {harmless(error.sentence)}\n")
    except config.ConfigError as error:
        sys.stderr.write(f"zot: {harmless(str(error))}\n")
    return FAILED


async def _serve(options: Mapping[str, object], env: Mapping[str, str]) -> int:
    with orphans_adopted():
        return await _run(options, env)


async def _run(options: Mapping[str, object], env: Mapping[str, str]) -> int:
    async with Runtime.open(options, env=env) as runtime:
        output = await open_output()
        door = StdioDoor(
            runtime.session,
            output.transport,
            dispatcher=Dispatcher(runtime.manager, HANDLERS),
            spawn=runtime.spawn,
            token=os.environ.get(TOKEN) or None,
        )
        output.control(door)
        signals: list[int] = []

        def stop(number: int) -> None:
            signals.append(number)
            door.finished.set()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stop, number)
        read_input(door.received, door.ended)
        await door.finished.wait()
        if signals:
            runtime.session.abort(for_good=True)
        await runtime.session.stopped()
        if not signals:
            await door.drained()  # without a time limit, as usual for a filter
        door.flush()
        await output.close(FLUSH_S if signals or door.refused else None)
        if signals:
            return 128 + signals[0]
        return FAILED if door.refused else 0


@cache
def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="zot rpc",
        description="Run one session that is not stored, over standard input and output: one JSON object per line.",
        epilog="""example: echo '{"type":"prompt","message":"hello"}' | zot rpc --provider anthropic""",
    )
    parser.add_argument(
        "--provider", metavar="PROVIDER", help="model vendor: anthropic, openai, …; see zot --list-models"
    )
    parser.add_argument("--model", help="model name")
    parser.add_argument("--cwd", metavar="DIR", help="working directory; default: the current one")
    add_key_flags(parser, has_stdin=False)
    parser.add_argument("--base-url", metavar="URL", help="base URL for model requests")
    parser.add_argument("--system-prompt", metavar="TEXT", help="replace the system prompt")
    parser.add_argument(
        "--append-system-prompt", action="append", metavar="TEXT", help="append to the system prompt; repeatable"
    )
    parser.add_argument(
        "--reasoning", metavar="LEVEL", help="reasoning effort: off, minimum, low, medium, high, xhigh or max"
    )
    parser.add_argument(
        "--mode", choices=MODES, metavar="MODE", help="approval mode: yolo (the default), workspace, ask or read-only"
    )
    parser.add_argument("--max-steps", type=int, metavar="N", help="maximum number of model calls per run")
    parser.add_argument("--budget-usd", type=float, metavar="USD", help="maximum cost of the session's model requests")
    parser.add_argument("--budget-tokens", type=int, metavar="N", help="maximum number of tokens of the session")
    parser.add_argument(
        "--fallback",
        type=lambda text: text.split(","),
        metavar="A,B",
        help="models to ask when the session's own fails",
    )
    parser.add_argument("--no-tools", action="store_true", default=None, help="disable all tools")
    parser.add_argument("--tools", type=lambda text: text.split(","), metavar="A,B", help="enable only these tools")
    parser.add_argument(
        "--ext", "-e", action="append", dest="extensions", metavar="PATH", help="load this extension; repeatable"
    )
    parser.add_argument("--no-ext", action="store_true", default=None, help="load no extensions except those of --ext")
    parser.add_argument(
        "--trust", action="store_true", help="run the project's own extensions and tools, as ZOT_TRUST=1 does"
    )
    return parser
