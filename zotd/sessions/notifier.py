"""Tells the user, who is not looking, that a session waits: runs the program that they have configured for it."""

import asyncio
import logging
import subprocess
from collections.abc import Callable, Coroutine, Mapping, Sequence

from zotd.process import spawn
from zotd.sanitize import escaped

TEXT = "{text}"
"""Stands for the sentence in `approval.notify_command`."""

TEXT_CHARS = 300
"""Longest sentence: what fits into a notification."""

RUN_S = 10.0
"""Longest run of the program: it hands a message on."""

MAX_RUNNING = 4
"""Programs at once; what comes then is only logged. They run for milliseconds, unless something is wrong with them."""

log = logging.getLogger(__name__)


class Notifier:
    """Runs the program once for each sentence."""

    def __init__(
        self,
        program: Callable[[], Sequence[str] | None],
        *,
        env: Mapping[str, str],
        spawn_task: Callable[[str, Coroutine[object, object, None]], None],
    ) -> None:
        """`program`: its argv as configured now, None: there is none. `env` is its whole environment; `spawn_task` runs a named coroutine."""
        self._program = program
        self._env = env
        self._spawn_task = spawn_task
        self._running = 0

    def tell(self, text: str) -> None:
        """Run the program with this sentence; returns at once, and never raises."""
        line = escaped(text)[:TEXT_CHARS]
        argv = self._program()
        if argv is None:
            return
        if self._running >= MAX_RUNNING:
            log.warning("no notification was sent, because %s programs still run: %s", MAX_RUNNING, line)
            return
        self._running += 1
        self._spawn_task("notification", self._run([word.replace(TEXT, line) for word in argv]))

    async def _run(self, argv: Sequence[str]) -> None:
        try:
            child = spawn(argv, cwd="/", env=self._env, on_output=_unread, stderr=subprocess.DEVNULL)
            async with asyncio.timeout(RUN_S), child:  # ends with its exit, or is ended
                code = await child.wait()
            if code != 0:
                log.warning("approval.notify_command: %s failed with exit code %s", argv[0], code)
        except TimeoutError:
            log.warning("approval.notify_command: %s was ended after %g s", argv[0], RUN_S)
        except (OSError, ValueError) as error:
            log.warning("approval.notify_command: %s cannot be started: %s", argv[0], error)
        finally:
            self._running -= 1


def _unread(_: bytes) -> None:
    """Its output is discarded."""
