"""Prepares the viewer at the position where it begins."""

from dataclasses import dataclass

from zotd.wire import api
from zottui.ui_context import UiContext
from zottui.viewer.going import Going
from zottui.viewer.pages import Pages
from zottui.viewer.reader import Reader


@dataclass(frozen=True, slots=True)
class Visit:
    """A reader at its first position."""

    reader: Reader
    going: Going
    name: str
    """Name or id of the session."""
    note: str = ""
    """First message for the last line."""
    turn: int | None = None
    """Number of the prompt to go to once prompts are counted."""


async def begun(
    desk: UiContext, *, turn: int | None, session: str | None, seq: int | None, call: int | None
) -> Visit | None:
    """Load the first page; for arguments see `zottui.viewer.view`. None without a session. Raises `ClientError`."""
    own = desk.state.session
    if session is None and own is None:
        return None
    if own is None or session not in {None, own.id}:
        own = await desk.ask(api.OfSession(session or ""), api.SessionInfo, command="session.get")
    name = own.name or own.id
    reader, going = _reader(desk, own.id)
    await going.to_newest()
    note = ""
    if seq is not None and not await going.to_message(seq):
        # Not on the current branch: a rewind may have left the message. Show the conversation as it was then.
        then, there = _reader(desk, own.id, seq)
        note = f"no message {seq}"
        if await there.to_message(seq):
            reader, going = then, there
            note = "this message is on a branch that a rewind left"
    if call is not None and not going.to_call(max(desk.state.tools - call, 0)):
        note = "no tool call yet"
    return Visit(reader, going, name, note, turn)


def _reader(desk: UiContext, session: str, at: int | None = None) -> tuple[Reader, Going]:
    reader = Reader(desk.theme)
    return reader, Going(reader, Pages(desk, session, at))
