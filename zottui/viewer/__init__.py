"""The whole conversation on the alternate screen: the scrollback stays as it was. Why it is so: docs/decisions/0024."""

from zottui.ui_context import UiContext


async def view(
    desk: UiContext,
    *,
    turn: int | None = None,
    session: str | None = None,
    seq: int | None = None,
    call: int | None = None,
) -> None:
    """Look through a conversation until the user has seen enough; the terminal is lent meanwhile.

    It begins at the newest message; or at the prompt with the number `turn`, from 1; at the message `seq`; at the tool call
    with the number `call` that was printed, with all of its output. `session`: another one than the desk's. Raises
    `zotd.client.errors.ClientError` when nothing can be shown; what fails later is said in the last line.
    """
    from zottui.viewer.screen import shown  # noqa: PLC0415
    from zottui.viewer.visit import begun  # noqa: PLC0415  (the first paint of the client waits for no viewer)

    visit = await begun(desk, turn=turn, session=session, seq=seq, call=call)
    if visit is None:
        desk.say("no session yet: still connecting to zotd", "warn")
        return
    await shown(desk, visit)
