"""Dialogs that ask one thing, for code that waits for the answer."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from zottui.ui_context import Dialog, UiContext

T = TypeVar("T")

Answer = Callable[[T | None], None]
"""Ends a dialog: with what was chosen, or None when the user wants nothing of it. Later answers count for nothing."""


async def answered(desk: UiContext, make: Callable[[Answer[T]], Dialog]) -> T | None:
    """Open the dialog that `make` gives, and wait for the user; cancelled, it closes.

    No timeout: people think, and go for lunch.
    """
    answer: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()

    def end(chosen: T | None) -> None:
        if not answer.done():
            answer.set_result(chosen)

    dialog = make(end)
    desk.open(dialog)
    try:
        return await answer
    finally:
        desk.close(dialog)
