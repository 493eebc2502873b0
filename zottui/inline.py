"""Runs `zot` on a terminal: startup, the application, and the restoring of the terminal at the end."""

import asyncio
import gc
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from threading import Thread

from zotd.client import place
from zotd.client.errors import ClientError
from zotd.client.options import parser
from zotd.sanitize import harmless
from zottui import crash
from zottui.preferences import load
from zottui.startup import Startup, opened
from zottui.terminal import early
from zottui.terminal.background import Question


def run(argv: Sequence[str]) -> int:
    """Show a session until the user leaves and return the exit code."""
    args = parser().parse_args(argv)
    # Switch echo off and ask the terminal for its background before the slow imports: keys that are typed meanwhile are
    # kept, and the answer has arrived when the theme is chosen.
    restore = early.cbreak()
    question = Question(os.environ)
    question.ask()
    code, words = 0, ""
    try:
        words = asyncio.run(_shown(args, question, _opening(args)))
    except ClientError as error:
        code, words = 1, f"zot: {error}"
    except KeyboardInterrupt:  # ctrl+c before prompt_toolkit reads the keyboard, while it still sends SIGINT
        code = 130
    except Exception as error:  # noqa: BLE001  (a bug, or the terminal is gone; the session continues in the daemon)
        code = 1
        if isinstance(error, OSError | EOFError) and not (os.isatty(0) and os.isatty(1)):
            _discard_output()
        else:
            words = f"\n{crash.kept(error, os.environ)}"  # a newline first: the last frame may still be on the line
    finally:
        question.drain()  # before `restore`: the shell would read a late answer of the terminal as input
        restore()
    gap = "" if code else "\n"  # a blank line after the conversation
    with suppress(OSError):
        sys.stderr.write(harmless(f"{gap}{words}\n") if words else "")
    return code


def _opening(args: Namespace) -> "Future[Startup]":
    """Find the session in a daemon thread: it does not delay the imports, nor the exit when zotd hangs."""
    found: Future[Startup] = Future()
    found.set_running_or_notify_cancel()  # or a cancelled waiter would make `set_result` raise in the thread

    def look() -> None:
        try:
            found.set_result(opened(args, os.environ))
        except BaseException as error:  # noqa: BLE001  (raised again in the waiting task)
            found.set_exception(error)

    Thread(target=look, daemon=True).start()
    return found


def _discard_output() -> None:
    """Redirect output to /dev/null: Python would print an error at exit when it cannot flush to a closed terminal."""
    null = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (sys.stdout.fileno(), sys.stderr.fileno()):
        os.dup2(null, descriptor)


async def _shown(args: Namespace, question: Question, opening: "Future[Startup]") -> str:
    """Run the application and return the text to print after it."""
    from zottui.app import App  # noqa: PLC0415  (while the thread connects to the daemon)
    from zottui.setup import Setup  # noqa: PLC0415
    from zottui.terminal.device import leaving_on_signals  # noqa: PLC0415
    from zottui.theme import choose  # noqa: PLC0415

    preferences = load(os.environ)
    answer = question.answer()
    theme = choose(os.environ, "plain" if args.no_color else preferences.theme, is_dark=answer.is_dark)
    app = App(
        Setup(
            theme=replace(theme, wraps_words=preferences.wrap != "terminal"),
            cwd=place.of(os.environ).directory(args.cwd) or "",
            env=os.environ,
            typed=answer.typed,
            is_vi=preferences.editing_mode == "vi",
            expect=question.expect,
        )
    )
    gc.freeze()  # imported objects live until the end; a full collection of them would delay a key
    gc.enable()
    with leaving_on_signals(app.leave):
        return await app.run(asyncio.wrap_future(opening), " ".join(args.prompt), goes_on=args.go_on)
