"""Commands that create, switch, rename and fork sessions."""

from zotd.wire import api
from zottui.commands.command import Command, UsageError, number, of
from zottui.commands.conversation import prompts
from zottui.dialogs.picker import Picker
from zottui.dialogs.sessions import created
from zottui.dialogs.tree import browse
from zottui.ui_context import UiContext


async def new(desk: UiContext, name: str) -> None:
    """Create a session in this directory and switch to it."""
    await desk.switch(await created(desk, name or None))


async def rename(desk: UiContext, name: str) -> None:
    """Rename the session."""
    if not name:
        raise UsageError("/rename needs the new name")
    await desk.ask(api.Rename(session=of(desk), name=name), api.SessionInfo)


async def fork(desk: UiContext, args: str) -> None:
    """Copy the session, or the part before a prompt, into a new one and switch to it."""
    which = number(args, "the prompt to fork before")
    seq = None
    if which is not None:
        turns = await prompts(desk)
        if not 1 < which <= len(turns):
            raise UsageError(f"there are {len(turns)} prompts; /fork N needs the second or a later one")
        seq = turns[which - 1].before
    forked = await desk.ask(api.Fork(session=of(desk), seq=seq), api.Created)
    await desk.switch(forked.session.id)


async def choose_one(desk: UiContext, _: str) -> None:
    """Open the list of sessions."""
    desk.open(Picker(desk))


async def tree(desk: UiContext, _: str) -> None:
    """Show the session's branches and forks; rewind to, fork or switch to the chosen one."""
    await browse(desk)


COMMANDS = (
    Command("sessions", "switch to another session", choose_one),
    Command("new", "start a session in this directory", new, "[NAME]"),
    Command("rename", "rename the session", rename, "NAME"),
    Command("fork", "continue in a copy of the session", fork, "[N]"),
    Command("tree", "show the session's forks and rewinds", tree),
)
