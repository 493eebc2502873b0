"""Lets a coroutine open a dialog and wait for the answer."""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from zottui.ui_context import Dialog, DialogHost

T = TypeVar("T")

Answer = Callable[[T | None], None]
"""Ends a dialog with the chosen value, or with None if the user cancels. Calls after the first have no effect."""


async def answered(ui: DialogHost, make: Callable[[Answer[T]], Dialog]) -> T | None:
    """Open the dialog that `make` returns and wait for its answer; None if the user cancels it.

    No timeout: a person may take hours. The dialog closes when the waiting task is cancelled.
    """
    answer: asyncio.Future[T | None] = asyncio.get_running_loop().create_future()

    def end(chosen: T | None) -> None:
        if not answer.done():
            answer.set_result(chosen)

    dialog = make(end)
    ui.open(dialog)
    try:
        return await answer
    finally:
        ui.close(dialog)  # also when the task is cancelled, or the dialog would keep the keys
