"""Commands about sessions: new ones, others, names, branches."""

from zotd.wire import api
from zottui.commands.command import Command, UsageError, number, of
from zottui.commands.conversation import prompts
from zottui.dialogs.picker import Picker
from zottui.dialogs.sessions import created
from zottui.dialogs.tree import browse
from zottui.ui_context import UiContext


async def new(desk: UiContext, name: str) -> None:
    """Go on in a new session of this directory."""
    await desk.switch(await created(desk, name or None))


async def rename(desk: UiContext, name: str) -> None:
    """Give the session a name."""
    if not name:
        raise UsageError("/rename needs the new name")
    await desk.ask(api.Rename(session=of(desk), name=name), api.SessionInfo)


async def fork(desk: UiContext, args: str) -> None:
    """Go on in a copy, of all or of what was said before a prompt."""
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
    """Switch to another session."""
    desk.open(Picker(desk))


async def tree(desk: UiContext, _: str) -> None:
    """The branches of this session; goes to one of them."""
    await browse(desk)


COMMANDS = (
    Command("sessions", "switch to another session", choose_one),
    Command("new", "start a session in this directory", new, "[NAME]"),
    Command("rename", "rename the session", rename, "NAME"),
    Command("fork", "continue in a copy of the session", fork, "[N]"),
    Command("tree", "show the session's forks and rewinds", tree),
)
