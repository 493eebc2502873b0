"""`zot acp`: serves an editor, which starts it, over standard input and output."""

import argparse
import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress

from zotd import logs
from zotd.bridges.acp.agent import AcpAgent
from zotd.bridges.acp.daemon import DaemonLink
from zotd.bridges.acp.editor import Editor
from zotd.client.environment import TRUST
from zotd.client.errors import ClientError
from zotd.client.options import add_place_flags
from zotd.sanitize import harmless
from zotd.stdio import open_output, read_input
from zotd.tasks import contained

LEAVE_S = 5.0
"""How long after the end of input to wait for the daemon to accept the last requests. Runs go on."""

FLUSH_S = 5.0
"""How long an editor that closed the input may take to read the remaining output."""


def main(argv: Sequence[str]) -> int:
    """Serve the editor until it closes standard input or exits; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="zot acp",
        description="Serve an editor over the Agent Client Protocol (ACP) on standard input and output.",
    )
    parser.add_argument(
        "--trust", action="store_true", help="run the project's own extensions and tools, as ZOT_TRUST=1 does"
    )
    add_place_flags(parser)
    env = {**os.environ, TRUST: "1"} if parser.parse_args(argv).trust else dict(os.environ)
    # Standard output belongs to the protocol, so the log goes to standard error.
    with logs.configured(None, level="warning", stderr=True):
        try:
            return asyncio.run(_serve(env))
        except ClientError as error:  # invalid address of a remote daemon
            sys.stderr.write(f"zot: {harmless(str(error))}\n")
            return 1


async def _serve(env: Mapping[str, str]) -> int:
    daemon, output = DaemonLink(env), await open_output()
    signals: list[int] = []
    running: set[asyncio.Task[None]] = set()
    async with asyncio.TaskGroup() as group:

        def spawn(name: str, work: Coroutine[object, object, None]) -> Callable[[], object]:
            # Contained: a request that fails must not end the program and the other sessions.
            task = contained(group, name, work)
            running.add(task)
            task.add_done_callback(running.discard)
            return task.cancel

        editor = Editor(output, spawn)
        AcpAgent(editor, daemon, spawn)

        def stop(number: int) -> None:
            signals.append(number)
            editor.has_ended.set()

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stop, number)
        read_input(editor.received, editor.ended, room=editor.may_read)
        watching = group.create_task(_watch(output.lost(), editor))
        await editor.has_ended.wait()
        with suppress(TimeoutError):
            # After a signal nothing is waited for.
            async with asyncio.timeout(0 if signals else LEAVE_S):
                await editor.settled()
        for task in (*running, watching):
            task.cancel()
    await daemon.close()
    await output.close(FLUSH_S)
    return 128 + signals[0] if signals else 0


async def _watch(lost: Coroutine[object, object, None], editor: Editor) -> None:
    """End when the editor stops reading, even if another process keeps our standard input open."""
    await lost
    editor.has_ended.set()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
