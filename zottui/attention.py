"""Reports to the daemon whether this terminal has the focus, so that it notifies only users who are not looking."""

from contextlib import suppress
from typing import Protocol

from zotd.client.errors import ClientError
from zotd.wire import api
from zottui.ui_context import CommandSender, StateHolder, TaskSpawner


class FocusContext(CommandSender, StateHolder, TaskSpawner, Protocol):
    """What `TerminalFocus` needs of the application."""


class TerminalFocus:
    """Keeps the focus and typing state of this terminal, and reports changes to the daemon."""

    def __init__(self, ui: FocusContext) -> None:
        """Assume the focus until the terminal reports otherwise: the user has just typed the command."""
        self._ui = ui
        self._is_focused = True
        self._is_typing = False

    def focused(self, is_focused: bool) -> None:
        """Report that the terminal has got or lost the focus."""
        if is_focused != self._is_focused:  # report changes only
            self._is_focused = is_focused
            self._tell()

    def typing(self, is_typing: bool) -> None:
        """Report that the editor has got text, or is empty again."""
        if is_typing != self._is_typing:
            self._is_typing = is_typing
            self._tell()

    def attached(self) -> None:
        """Report to a daemon that this client has just connected to; it knows nothing yet."""
        self._tell()

    def _tell(self) -> None:
        if self._ui.state.session is not None:
            self._ui.spawn(self._told())

    async def _told(self) -> None:
        session = self._ui.state.session
        assert session is not None, "asked before"
        params = api.PresenceUpdate(session=session.id, focused=self._is_focused, typing=self._is_typing)
        with suppress(ClientError):  # `attached` reports it again after a reconnect
            await self._ui.ask(params, api.Nothing)
