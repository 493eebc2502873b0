"""Commands that create, switch, rename and fork sessions."""

from zotd.wire import api
from zottui.commands.command import Command, UsageError, number, of
from zottui.dialogs.picker import Picker
from zottui.dialogs.sessions import created
from zottui.dialogs.tree import browse
from zottui.ui_context import UiContext
from zottui.viewer.turns import prompts


async def new(ui: UiContext, name: str) -> None:
    """Create a session in this directory and switch to it."""
    await ui.switch(await created(ui, name or None))


async def rename(ui: UiContext, name: str) -> None:
    """Rename the session."""
    if not name:
        raise UsageError("/rename needs the new name")
    await ui.ask(api.Rename(session=of(ui), name=name), api.SessionInfo)


async def fork(ui: UiContext, args: str) -> None:
    """Copy the session, or the part before a prompt, into a new one and switch to it."""
    which = number(args, "the prompt to fork before")
    seq = None
    if which is not None:
        turns = await prompts(ui, of(ui))
        if not 1 < which <= len(turns):
            raise UsageError(f"there are {len(turns)} prompts; /fork N needs the second or a later one")
        seq = turns[which - 1].before
    forked = await ui.ask(api.Fork(session=of(ui), seq=seq), api.Created)
    await ui.switch(forked.session.id)


async def choose_one(ui: UiContext, _: str) -> None:
    """Open the list of sessions."""
    ui.open(Picker(ui))


async def tree(ui: UiContext, _: str) -> None:
    """Show the session's branches and forks; rewind to, fork or switch to the chosen one."""
    await browse(ui)


COMMANDS = (
    Command("sessions", "switch to another session", choose_one),
    Command("new", "start a session in this directory", new, "[NAME]"),
    Command("rename", "rename the session", rename, "NAME"),
    Command("fork", "continue in a copy of the session", fork, "[N]"),
    Command("tree", "show the session's forks and rewinds", tree),
)
