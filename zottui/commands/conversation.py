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


async def compact(ui: UiContext, focus: str) -> None:
    """Replace the part of the transcript that the model sees with a summary; people still see all messages."""
    await ui.ask(api.Compact(session=of(ui), instructions=focus), api.Started, timeout_s=None)


async def clear(ui: UiContext, _: str) -> None:
    """Empty the model's context; the scrollback and the stored messages stay."""
    await ui.ask(api.Mutation(session=of(ui)), api.Nothing, command="clear")
    ui.say("the model's context is empty; the screen stays as it is")


async def go_on(ui: UiContext, _: str) -> None:
    """Continue a run that an error, an abort or a restart stopped."""
    params = api.RunCommand(session=of(ui), name="continue")
    await ui.ask(params, api.CommandResult)


async def retry(ui: UiContext, _: str) -> None:
    """Retry a failed model request now instead of at the end of its pause."""
    await ui.ask(api.Mutation(session=of(ui)), api.Nothing, command="retry")


async def rewind(ui: UiContext, args: str) -> None:
    """Rewind the conversation to before a prompt and put that prompt into the editor. Files are not changed."""
    known = await prompts(ui)
    which = number(args, "the prompt to rewind to")
    if which is None:
        entries = [Entry(str(at), f"{at:3}  {cut(clean(turn.text), SHOWN_CELLS)}") for at, turn in enumerate(known, 1)]
        chosen = await choose.ask(ui, "rewind to before", entries[::-1])
        which = None if chosen is None else int(chosen)
    if which is not None:
        await _rewind(ui, known, which)


async def _rewind(ui: UiContext, known: list[PromptEntry], which: int) -> None:
    if not 1 <= which <= len(known):
        raise UsageError(f"there are {len(known)} prompts; /rewind N rewinds to before prompt N")
    turn = known[which - 1]
    if turn.before is None:
        # Nothing precedes the first prompt, and `rewind` needs a message to rewind to.
        await ui.ask(api.Mutation(session=of(ui)), api.Nothing, command="clear")
    else:
        await ui.ask(api.Rewind(session=of(ui), seq=turn.before), api.Nothing)
    ui.edit(turn.text)


async def prompts(ui: UiContext) -> list[PromptEntry]:
    """Return the prompts on the current branch of the conversation, oldest first."""
    return [turn async for turn in turns(ui, of(ui))][::-1]


COMMANDS = (
    Command("compact", "summarise the conversation for the model", compact, "[FOCUS]"),
    Command("clear", "empty the model's context", clear),
    Command("continue", "continue a run that stopped", go_on),
    Command("retry", "retry a failed model request now", retry),
    Command("rewind", "rewind to before a prompt; files are not changed", rewind, "[N]"),
)
