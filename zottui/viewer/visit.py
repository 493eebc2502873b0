"""Where a look at a conversation begins."""

from dataclasses import dataclass

from zotd.wire import api
from zottui.ui_context import UiContext
from zottui.viewer.going import Going
from zottui.viewer.pages import Pages
from zottui.viewer.reader import Reader


@dataclass(frozen=True, slots=True)
class Visit:
    """A reader at the place where it begins."""

    reader: Reader
    going: Going
    name: str
    """Of the session."""
    note: str = ""
    """What is to be said about it at first."""
    turn: int | None = None
    """The prompt to go to when the prompts are counted."""


async def begun(
    desk: UiContext, *, turn: int | None, session: str | None, seq: int | None, call: int | None
) -> Visit | None:
    """Load what is shown first; arguments as of `zottui.viewer.view`. None: there is no session. Raises `ClientError`."""
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
