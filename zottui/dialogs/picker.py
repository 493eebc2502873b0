"""The list of sessions (`/sessions`), to open, create, rename and delete them."""

import time
from collections.abc import Callable

from zotd.wire import api
from zotd.wire.events import AnyEvent
from zottui.dialogs import confirm, input  # noqa: A004  (the module)
from zottui.dialogs.frame import framed, headed
from zottui.dialogs.keys import named
from zottui.dialogs.listing import Listing
from zottui.dialogs.sessions import SessionsDialog, created
from zottui.theme import TextRole
from zottui.ui_context import Row, UiContext
from zottui.widgets.cells import clean, piece
from zottui.widgets.status import short_path

KEYS = (
    ("enter", "open"), ("tab", "all directories"), ("ctrl+n", "new"), ("ctrl+r", "rename"), ("ctrl+d", "delete"),
    ("esc", "close"),
)  # fmt: skip


class Picker:
    """A dialog with the sessions of the current directory, or with tab of all directories."""

    has_editor = False

    def __init__(self, ui: UiContext, clock: Callable[[], float] = time.time) -> None:
        """Start loading the sessions. `clock` returns seconds since the epoch, for ages."""
        self._ui = ui
        self._sessions = SessionsDialog(ui, clock, cwd=ui.cwd)
        self._listing = Listing()
        self._sessions.want()

    def see(self, event: AnyEvent) -> None:
        """Update the list from an event of the topic `sessions`."""
        if self._sessions.see(event):
            self._ui.redraw()

    def rows(self, width: int, height: int) -> list[Row]:
        """Return the directory or the filter, the sessions and the key hints."""
        self._listing.replace(self._sessions.entries())
        return framed(self._head(width), lambda room: self._body(width, room), KEYS, width=width, height=height)

    def _head(self, width: int) -> Row:
        cwd = self._sessions.cwd
        where = "in all directories" if cwd is None else f"in {short_path(cwd, self._ui.env.get('HOME', ''))}"
        if self._listing.filter.text:
            return self._listing.filter.row("sessions: ", width)
        return headed("sessions", where)

    def _body(self, width: int, room: int) -> list[Row]:
        if rows := self._listing.rows(width, room):
            return rows
        words = "loading…" if not self._sessions.is_loaded else "no sessions; ctrl+n creates one"
        return [[piece(TextRole.MUTED, f"  {words}")]]

    def key(self, name: str, text: str) -> bool:
        """Act on the selected session, or move the selection and edit the filter."""
        self._listing.replace(self._sessions.entries())  # events may have changed the list since it was drawn
        match named(name):
            case "escape":
                self._ui.close(self)
            case "tab":
                self._sessions.show_directory(None if self._sessions.cwd is not None else self._ui.cwd)
            case "c-n":
                self._ui.spawn(self._new())
            case "enter" | "c-r" | "c-d" as key:
                if (selected := self._listing.selected) is not None:
                    self._with(key, selected.key)
            case _:
                return self._listing.key(name, text)
        return True

    def _with(self, key: str, session: str) -> None:
        match key:
            case "enter":
                self._ui.close(self)
                self._ui.spawn(self._ui.switch(session))
            case "c-r":
                self._ui.spawn(self._rename(session))
            case _:
                self._ui.spawn(self._delete(session))

    async def _new(self) -> None:
        session = await created(self._ui)
        self._ui.close(self)
        await self._ui.switch(session)

    async def _rename(self, session: str) -> None:
        name = await input.ask(self._ui, "session name", text=self._name(session))
        if name is not None:
            self._sessions.put(await self._ui.ask(api.Rename(session=session, name=name), api.SessionInfo))
            self._ui.redraw()

    async def _delete(self, session: str) -> None:
        # Deleting the session on the screen would end the client.
        current = self._ui.state.session
        if current is not None and current.id == session:
            self._ui.say("this session is open here; switch to another one before you delete it", "warn")
            return
        what = clean(self._name(session) or session)
        if await confirm.ask(self._ui, f"delete {what} and its whole conversation?"):
            await self._ui.administer(api.Mutation(session=session), api.Nothing, command="session.delete")
            self._sessions.remove(session)
            self._ui.redraw()

    def _name(self, session: str) -> str:
        info = self._sessions.get(session)
        return info.name if info is not None else ""
