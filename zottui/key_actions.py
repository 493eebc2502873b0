"""The actions of the keys in `zottui.keys`."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent

from zotd.wire import api
from zotd.wire.jobs import JobInfo
from zottui.commands.command import of
from zottui.commands.settings import next_mode
from zottui.dialogs.overview import Overview
from zottui.keys import DialogKeys, bindings
from zottui.ui_context import Dialog, UiContext
from zottui.viewer import view

TWICE_S = 2.0
"""Seconds within which a second ctrl+c leaves the client."""


class KeyContext(UiContext, Protocol):
    """What the key actions need of the application besides `UiContext`."""

    @property
    def dialog(self) -> Dialog | None:
        """The dialog that gets the keys."""
        ...

    def steer(self) -> None:
        """Send the editor's text into the current run."""
        ...

    def clear(self) -> None:
        """Clear the editor."""
        ...

    def repaint(self) -> None:
        """Repaint the whole live area."""
        ...

    async def stop(self) -> None:
        """Suspend this process."""
        ...


class KeyActions:
    """Binds the global keys to an application."""

    def __init__(self, app: KeyContext) -> None:
        """Create the bindings; add `bindings` to the application."""
        self._app = app
        self.hint = ""
        """Replaces the status bar after ctrl+c: that a second ctrl+c leaves."""
        # Number of ctrl+c presses so far.
        self._presses = 0
        # Number of all key presses so far, and at the last ctrl+c. Both are needed to see that no key came in between.
        self._keys = self._keys_before = 0
        self.dialogs = DialogKeys(self._take, lambda: app.dialog is not None, self._count)
        self.bindings: KeyBindings = bindings(self.dialogs, self._actions())

    def _actions(self) -> dict[str, Callable[[KeyPressEvent], None]]:
        app = self._app
        return {
            "interrupt": lambda _: self._interrupt(),
            "cancel": lambda _: self._cancel(),
            "leave": self._end_of_input,
            "steer": lambda _: app.steer(),
            "background": self._to_background,
            "view": lambda _: app.spawn(view(app)),
            "detail": lambda _: app.spawn(view(app, call=app.state.tools)),
            "overview": lambda _: app.open(Overview(app)),
            "mode": lambda _: app.spawn(next_mode(app)),
            "repaint": lambda _: app.repaint(),
            "suspend": lambda _: app.spawn(app.stop()),
        }

    def _take(self, name: str, text: str) -> bool:
        dialog = self._app.dialog
        taken = dialog is not None and dialog.key(name, text)
        self._app.redraw()
        return taken

    def _interrupt(self) -> None:
        if self._app.state.run is not None:
            self._app.spawn(self._abort())

    async def _abort(self) -> None:
        await self._app.ask(api.Mutation(session=of(self._app)), api.Nothing, command="abort")

    def _to_background(self, event: KeyPressEvent) -> None:
        if self._app.text:
            event.current_buffer.cursor_left()
        elif self._app.state.run is not None:
            self._app.spawn(self._move())

    async def _move(self) -> None:
        await self._app.ask(api.JobMove(session=of(self._app)), JobInfo, command="session.job_move")

    def _cancel(self) -> None:
        """Clear the editor and show the hint; on a second ctrl+c without another key in between, leave."""
        is_second = self._keys == self._keys_before + 1
        self._keys_before = self._keys
        # Leave only while the hint is on the screen: the user must know what a second press does.
        if self.hint and is_second and not self._app.text:
            self._app.leave()
            return
        self._app.clear()
        self._presses += 1
        self.hint = "ctrl+c again to leave"
        if self._app.state.run is not None:
            self.hint += "; the run continues, esc interrupts it"
        self._app.redraw()
        self._app.spawn(self._forget(self._presses))

    def _count(self) -> None:
        self._keys += 1

    async def _forget(self, press: int) -> None:
        await asyncio.sleep(TWICE_S)
        if press == self._presses:  # a later press has its own timer
            self.hint = ""
            self._app.redraw()

    def _end_of_input(self, event: KeyPressEvent) -> None:
        if not self._app.text:
            self._app.leave()
        else:
            event.current_buffer.delete()
