"""The viewer: the whole conversation on the alternate screen, which leaves the scrollback as it is.

Why it works as it does: docs/decisions/0024.
"""

from zottui.ui_context import UiContext


async def view(
    ui: UiContext,
    *,
    turn: int | None = None,
    session: str | None = None,
    seq: int | None = None,
    call: int | None = None,
) -> None:
    """Open the viewer until the user leaves it. The application below is suspended meanwhile.

    Args:
        ui: the application.
        turn: begin at the prompt with this number, from 1; by default at the newest message.
        session: show this session instead of the current one.
        seq: begin at this message.
        call: begin at the printed tool call with this number, expanded.

    Raises:
        ClientError: the first page cannot be loaded. Later errors are shown in the last line.
    """
    from zottui.viewer.screen import shown  # noqa: PLC0415  (only when needed: it would delay the first paint)
    from zottui.viewer.visit import begun  # noqa: PLC0415

    visit = await begun(ui, turn=turn, session=session, seq=seq, call=call)
    if visit is None:
        ui.say("no session yet: still connecting to zotd", "warn")
        return
    await shown(ui, visit)
