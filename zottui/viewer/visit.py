"""Prepares the viewer at the position where it begins."""

from dataclasses import dataclass

from zotd.wire import api
from zottui.ui_context import UiContext
from zottui.viewer.navigation import Navigator
from zottui.viewer.pages import Pages
from zottui.viewer.reader import Reader


@dataclass(frozen=True, slots=True)
class Visit:
    """A reader at its first position."""

    reader: Reader
    navigator: Navigator
    name: str
    """Name or id of the session."""
    note: str = ""
    """First message for the last line."""
    turn: int | None = None
    """Number of the prompt to go to once prompts are counted."""


async def begun(
    ui: UiContext, *, turn: int | None, session: str | None, seq: int | None, call: int | None
) -> Visit | None:
    """Load the first page; for arguments see `zottui.viewer.view`. None without a session. Raises `ClientError`."""
    own = ui.state.session
    if session is None and own is None:
        return None
    if own is None or session not in {None, own.id}:
        own = await ui.ask(api.OfSession(session or ""), api.SessionInfo, command="session.get")
    name = own.name or own.id
    reader, navigator = _reader(ui, own.id)
    await navigator.to_newest()
    note = ""
    if seq is not None and not await navigator.to_message(seq):
        # Not on the current branch: a rewind may have left the message. Show the conversation as it was then.
        then, there = _reader(ui, own.id, seq)
        note = f"no message {seq}"
        if await there.to_message(seq):
            reader, navigator = then, there
            note = "this message is on a branch that a rewind left"
    if call is not None and not navigator.to_call(max(ui.state.tools - call, 0)):
        note = "no tool call yet"
    return Visit(reader, navigator, name, note, turn)


def _reader(ui: UiContext, session: str, at: int | None = None) -> tuple[Reader, Navigator]:
    reader = Reader(ui.theme)
    return reader, Navigator(reader, Pages(ui, session, at))
