"""`zot` on a terminal, from Enter to the last word."""

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
    """Show a session until the user leaves; the exit code."""
    args = parser().parse_args(argv)
    restore = early.cbreak()
    question = Question(os.environ)
    question.ask()
    code, words = 0, ""
    try:
        words = asyncio.run(_shown(args, question, _opening(args)))
    except ClientError as error:
        code, words = 1, f"zot: {error}"
    except KeyboardInterrupt:  # before the keyboard was prompt_toolkit's
        code = 130
    except Exception as error:  # noqa: BLE001  (a bug, or the terminal is gone; the session is not)
        code = 1
        if isinstance(error, OSError | EOFError) and not (os.isatty(0) and os.isatty(1)):
            _discard_output()
        else:
            words = f"\n{crash.kept(error, os.environ)}"  # below what may be left of the last frame
    finally:
        question.drain()
        restore()
    gap = "" if code else "\n"  # below what was said in the session
    with suppress(OSError):
        sys.stderr.write(harmless(f"{gap}{words}\n") if words else "")
    return code


def _opening(args: Namespace) -> "Future[Startup]":
    """The session is looked for in a thread that nobody waits for in the end: the daemon may hang."""
    found: Future[Startup] = Future()
    found.set_running_or_notify_cancel()  # what nobody waits for any more is found all the same

    def look() -> None:
        try:
            found.set_result(opened(args, os.environ))
        except BaseException as error:  # noqa: BLE001  (raised where it is waited for)
            found.set_exception(error)

    Thread(target=look, daemon=True).start()
    return found


def _discard_output() -> None:
    """What is left of it cannot be written, and Python would say so at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (sys.stdout.fileno(), sys.stderr.fileno()):
        os.dup2(null, descriptor)


async def _shown(args: Namespace, question: Question, opening: "Future[Startup]") -> str:
    """What is said in the end."""
    from zottui.app import App  # noqa: PLC0415  (imported while the thread looks for the daemon)
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
    gc.freeze()  # what is there now stays: no key waits while it is looked through
    gc.enable()
    with leaving_on_signals(app.leave):
        return await app.run(asyncio.wrap_future(opening), " ".join(args.prompt), goes_on=args.go_on)
