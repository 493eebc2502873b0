"""The `zotd` command: the daemon in the foreground.

Clients start it with `--autostarted --ready-fd N`. It then writes `ready PID` or `error SENTENCE` to the pipe N, and exits
by itself after being idle.
"""

import argparse
import asyncio
import faulthandler
import os
import sys
from collections.abc import Sequence

from zotd import config, logs, malloc_tuning, paths
from zotd.api.unix import RunningError, SocketError
from zotd.app import Daemon, DaemonSetup, DescendantError, prepare
from zotd.core.ports import StorageError
from zotd.process import descriptors
from zotd.process.supervisor import VARIABLES
from zotd.sanitize import harmless
from zotd.store.home import HeldError
from zotd.wire.version import VERSION

FAILED = 1
RUNNING = 3
"""Exit code if another daemon uses the home or the socket, so that service managers can tell this from a failure."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the daemon until it is stopped; returns the exit code."""
    options = _parser().parse_args(argv)
    malloc_tuning.tune_malloc()
    descriptors.raise_limit()
    faulthandler.enable()  # the watchdog kills a hanging event loop with SIGABRT; stderr then shows where it hung
    try:
        setup = prepare(dict(os.environ), autostarted=options.autostarted, flags={"log_level": options.log_level})
        for name in VARIABLES:
            os.environ.pop(name, None)
        with logs.configured(
            setup.home / "logs" / "zotd.log", level=setup.loaded.config.log_level, stderr=not options.autostarted
        ):
            asyncio.run(_serve(setup, options.ready_fd))
    except (RunningError, HeldError) as error:
        return _fail(options.ready_fd, str(error), RUNNING)
    except (paths.UnsafePathError, config.ConfigError, SocketError, StorageError, DescendantError) as error:
        return _fail(options.ready_fd, str(error), FAILED)
    except OSError as error:  # the home cannot be created or written to; a failed write names no file
        return _fail(options.ready_fd, f"{error.filename or paths.zot_home(os.environ)}: {error.strerror}", FAILED)
    return 0


async def _serve(setup: DaemonSetup, ready_fd: int | None) -> None:
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    ready.add_done_callback(lambda future: None if future.cancelled() else _tell(ready_fd, f"ready {os.getpid()}"))
    await Daemon(setup).run(ready)


def _fail(ready_fd: int | None, sentence: str, code: int) -> int:
    _tell(ready_fd, f"error {sentence}")
    sys.stderr.write(f"zotd: {harmless(sentence)}\n")
    return code


def _tell(ready_fd: int | None, line: str) -> None:
    """Report to the client that started this daemon, if any; it may have exited meanwhile."""
    if ready_fd is None:
        return
    try:
        os.write(ready_fd, (line + "\n").encode())
        os.close(ready_fd)
    except OSError:
        return


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="zotd", description="Run the daemon that keeps zot's sessions, in the foreground."
    )
    parser.add_argument("--version", action="version", version=f"zotd {VERSION}")
    parser.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), help="lowest level of log messages"
    )
    parser.add_argument("--autostarted", action="store_true", help="exit after being idle (limits.idle_exit_s)")
    parser.add_argument("--ready-fd", type=int, metavar="N", help="descriptor to report readiness or a start error to")
    return parser


if __name__ == "__main__":
    sys.exit(main())
