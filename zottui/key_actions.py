"""What the keys of `zottui.keys` do."""

import asyncio
from collections.abc import Callable
from typing import Protocol

from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.key_processor import KeyPressEvent

from zotd.wire import api
from zottui.commands.command import of
from zottui.commands.settings import next_mode
from zottui.dialogs.overview import Overview
from zottui.keys import DialogKeys, bindings
from zottui.ui_context import Dialog, UiContext
from zottui.viewer import view

TWICE_S = 2.0
"""Within this time a second Ctrl-C leaves: longer than two presses take, shorter than a change of mind."""


class KeyContext(UiContext, Protocol):
    """What keys need besides the desk."""

    @property
    def dialog(self) -> Dialog | None:
        """The one that has the keys."""
        ...

    def steer(self) -> None:
        """Send what is in the editor into what runs."""
        ...

    def clear(self) -> None:
        """Empty the editor."""
        ...

    def repaint(self) -> None:
        """Draw the live area anew."""
        ...

    async def stop(self) -> None:
        """Stop this job, as Ctrl-Z does."""
        ...


class KeyActions:
    """Binds the keys to a place."""

    def __init__(self, place: KeyContext) -> None:
        """Nothing was pressed yet."""
        self._place = place
        self.hint = ""
        """What is said in the place of the status bar: that the key which was just pressed leaves when it comes again."""
        self._presses = 0
        """Of Ctrl-C, so far."""
        self._keys = self._keys_before = 0
        """Of all keys: so far, and at the last Ctrl-C."""
        self.dialogs = DialogKeys(self._take, lambda: place.dialog is not None, self._count)
        self.bindings: KeyBindings = bindings(self.dialogs, self._actions())

    def _actions(self) -> dict[str, Callable[[KeyPressEvent], None]]:
        place = self._place
        return {
            "interrupt": lambda _: self._interrupt(),
            "cancel": lambda _: self._cancel(),
            "leave": self._end_of_input,
            "steer": lambda _: place.steer(),
            "view": lambda _: place.spawn(view(place)),
            "detail": lambda _: place.spawn(view(place, call=place.state.tools)),
            "overview": lambda _: place.open(Overview(place)),
            "mode": lambda _: place.spawn(next_mode(place)),
            "repaint": lambda _: place.repaint(),
            "suspend": lambda _: place.spawn(place.stop()),
        }

    def _take(self, name: str, text: str) -> bool:
        dialog = self._place.dialog
        taken = dialog is not None and dialog.key(name, text)
        self._place.redraw()
        return taken

    def _interrupt(self) -> None:
        if self._place.state.run is not None:
            self._place.spawn(self._abort())

    async def _abort(self) -> None:
        await self._place.ask(api.Mutation(session=of(self._place)), api.Nothing, command="abort")

    def _cancel(self) -> None:
        """Once: the draft goes, and how to leave is said. Twice, with no other key in between: leave."""
        is_second = self._keys == self._keys_before + 1
        self._keys_before = self._keys
        if self.hint and is_second and not self._place.text:
            self._place.leave()
            return
        self._place.clear()
        self._presses += 1
        self.hint = "ctrl+c again to leave"
        if self._place.state.run is not None:
            self.hint += "; the run continues, esc interrupts it"
        self._place.redraw()
        self._place.spawn(self._forget(self._presses))

    def _count(self) -> None:
        self._keys += 1

    async def _forget(self, press: int) -> None:
        await asyncio.sleep(TWICE_S)
        if press == self._presses:
            self.hint = ""
            self._place.redraw()

    def _end_of_input(self, event: KeyPressEvent) -> None:
        if not self._place.text:
            self._place.leave()
        else:
            event.current_buffer.delete()
