"""Commands that change the conversation: compact, clear, continue, retry, rewind."""

from zotd.wire import api
from zottui.commands.command import Command, UsageError, number, of
from zottui.commands.files import FILES, FileFlags
from zottui.dialogs import choose
from zottui.dialogs.listing import Entry
from zottui.dialogs.side_card import ask_beside
from zottui.ui_context import UiContext
from zottui.viewer.turns import PromptEntry, prompts
from zottui.widgets.cells import clean, cut

SHOWN_CELLS = 60
"""Columns of a prompt's text in the list of `/rewind`."""

WHAT = (
    Entry("", "the conversation only", ("files stay as they are",)),
    Entry(FILES, "the conversation and the files", ("what runs have changed in files since is undone",)),
)
"""What `/rewind` goes back with."""


async def compact(ui: UiContext, focus: str) -> None:
    """Replace the part of the transcript that the model sees with a summary; people still see all messages."""
    params = api.RunCommand(session=of(ui), name="compact", args=focus)  # another agent may have its own
    await ui.ask(params, api.CommandResult, timeout_s=None)


async def clear(ui: UiContext, _: str) -> None:
    """Empty the model's context; the scrollback and the stored messages stay."""
    await ui.ask(api.Mutation(session=of(ui)), api.Nothing, command="clear")
    ui.say("the model's context is empty; the screen stays as it is")


async def by_the_way(ui: UiContext, question: str) -> None:
    """Ask the model something beside the conversation, which stays as it is; also while a run goes on."""
    if not question:
        raise UsageError("/btw needs a question")
    ui.spawn(ask_beside(ui, of(ui), question))


async def go_on(ui: UiContext, _: str) -> None:
    """Continue a run that an error, an abort or a restart stopped."""
    params = api.RunCommand(session=of(ui), name="continue")
    await ui.ask(params, api.CommandResult)


async def retry(ui: UiContext, _: str) -> None:
    """Retry a failed model request now instead of at the end of its pause."""
    await ui.ask(api.Mutation(session=of(ui)), api.Nothing, command="retry")


async def rewind(ui: UiContext, args: str) -> None:
    """Rewind the conversation to before a prompt and put that prompt into the editor; with `--files` also the files."""
    flags = FileFlags.parsed(args)
    which = number(flags.rest, "the prompt to rewind to")
    known = await prompts(ui, of(ui))
    with_files: bool | None = flags.with_files
    if which is None:
        entries = [Entry(str(at), f"{at:3}  {cut(clean(turn.text), SHOWN_CELLS)}") for at, turn in enumerate(known, 1)]
        chosen = await choose.ask(ui, "rewind to before", entries[::-1])
        if chosen is None:
            return
        which = int(chosen)
        with_files = with_files or await _wants_files(ui)
    if with_files is not None:
        await _rewind(ui, _numbered(known, which), flags.when_changed if with_files else None)


async def _wants_files(ui: UiContext) -> bool | None:
    """Ask whether the files go back, too; None: the user cancels."""
    chosen = await choose.ask(ui, "rewind", WHAT)
    return None if chosen is None else chosen == FILES


def _numbered(known: list[PromptEntry], which: int) -> PromptEntry:
    if not 1 <= which <= len(known):
        raise UsageError(f"there are {len(known)} prompts; /rewind N rewinds to before prompt N")
    return known[which - 1]


async def _rewind(ui: UiContext, turn: PromptEntry, when_changed: str | None) -> None:
    """`when_changed`: what happens to files that the user has changed since; None: files stay as they are."""
    session = of(ui)
    if turn.before is None:
        # Nothing precedes the first prompt, and `rewind` needs a message to rewind to.
        if when_changed is not None:
            params = api.Undo(session=session, after=0, when_changed=when_changed)
            await ui.ask(params, api.FilesRestored, timeout_s=None)
        await ui.ask(api.Mutation(session=session), api.Nothing, command="clear")
    elif when_changed is None:
        await ui.ask(api.Rewind(session=session, seq=turn.before), api.FilesRestored)
    else:
        both = api.Rewind(session=session, seq=turn.before, files=True, when_changed=when_changed)
        await ui.ask(both, api.FilesRestored, timeout_s=None)
    ui.edit(turn.text)


COMMANDS = (
    Command("compact", "summarise the conversation for the model", compact, "[FOCUS]"),
    Command("btw", "ask something beside the conversation", by_the_way, "QUESTION"),
    Command("clear", "empty the model's context", clear),
    Command("continue", "continue a run that stopped", go_on),
    Command("retry", "retry a failed model request now", retry),
    Command("rewind", "rewind to before a prompt, also the files", rewind, "[N] [--files]"),
)
