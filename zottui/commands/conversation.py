"""Commands that change the conversation: compact, clear, continue, retry, rewind."""

from zotd.wire import api
from zottui.commands.command import Command, UsageError, number, of
from zottui.dialogs import choose
from zottui.dialogs.listing import Entry
from zottui.ui_context import UiContext
from zottui.viewer.turns import PromptEntry, turns
from zottui.widgets.cells import clean, cut

SHOWN_CELLS = 60
"""Columns of a prompt's text in the list of `/rewind`."""


async def compact(desk: UiContext, focus: str) -> None:
    """Replace the part of the transcript that the model sees with a summary; people still see all messages."""
    await desk.ask(api.Compact(session=of(desk), instructions=focus), api.Started, timeout_s=None)


async def clear(desk: UiContext, _: str) -> None:
    """Empty the model's context; the scrollback and the stored messages stay."""
    await desk.ask(api.Mutation(session=of(desk)), api.Nothing, command="clear")
    desk.say("the model's context is empty; the screen stays as it is")


async def go_on(desk: UiContext, _: str) -> None:
    """Continue a run that an error, an abort or a restart stopped."""
    params = api.RunCommand(session=of(desk), name="continue")
    await desk.ask(params, api.CommandResult)


async def retry(desk: UiContext, _: str) -> None:
    """Retry a failed model request now instead of at the end of its pause."""
    await desk.ask(api.Mutation(session=of(desk)), api.Nothing, command="retry")


async def rewind(desk: UiContext, args: str) -> None:
    """Rewind the conversation to before a prompt and put that prompt into the editor. Files are not changed."""
    known = await prompts(desk)
    which = number(args, "the prompt to rewind to")
    if which is None:
        entries = [Entry(str(at), f"{at:3}  {cut(clean(turn.text), SHOWN_CELLS)}") for at, turn in enumerate(known, 1)]
        chosen = await choose.ask(desk, "rewind to before", entries[::-1])
        which = None if chosen is None else int(chosen)
    if which is not None:
        await _rewind(desk, known, which)


async def _rewind(desk: UiContext, known: list[PromptEntry], which: int) -> None:
    if not 1 <= which <= len(known):
        raise UsageError(f"there are {len(known)} prompts; /rewind N rewinds to before prompt N")
    turn = known[which - 1]
    if turn.before is None:
        # Nothing precedes the first prompt, and `rewind` needs a message to rewind to.
        await desk.ask(api.Mutation(session=of(desk)), api.Nothing, command="clear")
    else:
        await desk.ask(api.Rewind(session=of(desk), seq=turn.before), api.Nothing)
    desk.text = turn.text


async def prompts(desk: UiContext) -> list[PromptEntry]:
    """Return the prompts on the current branch of the conversation, oldest first."""
    return [turn async for turn in turns(desk, of(desk))][::-1]


COMMANDS = (
    Command("compact", "summarise the conversation for the model", compact, "[FOCUS]"),
    Command("clear", "empty the model's context", clear),
    Command("continue", "continue a run that stopped", go_on),
    Command("retry", "retry a failed model request now", retry),
    Command("rewind", "rewind to before a prompt; files are not changed", rewind, "[N]"),
)
