"""Whether somebody looks at this terminal: the daemon is told, and calls for attention only where nobody does."""

from contextlib import suppress

from zotd.client.errors import ClientError
from zotd.wire import api
from zottui.ui_context import UiContext


class TerminalFocus:
    """The focus of one terminal."""

    def __init__(self, desk: UiContext) -> None:
        """Somebody looks, as long as the terminal does not say otherwise: they have just typed the command."""
        self._desk = desk
        self._is_focused = True
        self._is_typing = False

    def focused(self, is_focused: bool) -> None:
        """The terminal has got or lost the focus."""
        if is_focused != self._is_focused:
            self._is_focused = is_focused
            self._tell()

    def typing(self, is_typing: bool) -> None:
        """There is something in the editor, or not any more."""
        if is_typing != self._is_typing:
            self._is_typing = is_typing
            self._tell()

    def attached(self) -> None:
        """A daemon that knows nothing of it yet is there."""
        self._tell()

    def _tell(self) -> None:
        if self._desk.state.session is not None:
            self._desk.spawn(self._told())

    async def _told(self) -> None:
        session = self._desk.state.session
        assert session is not None, "asked before"
        params = api.PresenceUpdate(session=session.id, focused=self._is_focused, typing=self._is_typing)
        with suppress(ClientError):  # it is told again when this client comes back
            await self._desk.ask(params, api.Nothing)
