"""`zot` on a terminal, from Enter to the last word."""

import asyncio
import gc
import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress

from zotd.client.errors import ClientError
from zotd.client.options import parser, working_directory
from zotd.client.plain import harmless
from zottui.opening import Opened, opened
from zottui.preferences import load
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
        with ThreadPoolExecutor(1) as threads:
            words = asyncio.run(_shown(args, question, threads.submit(opened, args, os.environ)))
    except ClientError as error:
        code, words = 1, f"zot: {error}"
    except (OSError, EOFError):  # the terminal is gone; the session is not
        code = 1
        _discard_output()
    except KeyboardInterrupt:  # before the keyboard was prompt_toolkit's
        code = 130
    finally:
        question.drain()
        restore()
    gap = "" if code else "\n"  # below what was said in the session
    with suppress(OSError):
        sys.stderr.write(f"{gap}{harmless(words)}\n" if words else "")
    return code


def _discard_output() -> None:
    """What is left of it cannot be written, and Python would say so at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (sys.stdout.fileno(), sys.stderr.fileno()):
        os.dup2(null, descriptor)


async def _shown(args: Namespace, question: Question, opening: "Future[Opened]") -> str:
    """What is said in the end."""
    from zottui.app import App, Setup  # noqa: PLC0415  (imported while the thread looks for the daemon)
    from zottui.theme import choose  # noqa: PLC0415

    preferences = load(os.environ)
    answer = question.answer()
    app = App(
        Setup(
            theme=choose(os.environ, "plain" if args.no_color else preferences.theme, is_dark=answer.is_dark),
            cwd=working_directory(args),
            env=os.environ,
            typed=answer.typed,
            is_vi=preferences.editing_mode == "vi",
        )
    )
    gc.freeze()  # what is there now stays: no key waits while it is looked through
    gc.enable()
    return await app.run(asyncio.wrap_future(opening), " ".join(args.prompt), goes_on=args.go_on)
