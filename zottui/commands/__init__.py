"""The slash commands of this client, for `/help`, completion and dispatch. A new one is a row of its module."""

from zottui.commands import accounts, conversation, display, looking, sessions, settings
from zottui.commands.command import Command
from zottui.desk import Desk
from zottui.widgets.cells import clean, cut

WHAT_CELLS = 60
"""Of what an extension or a skill says about a command: a line of a list, and not its manual."""


async def help_(desk: Desk, _: str) -> None:
    """List the commands; those of extensions, too."""
    rows = [(f"/{command.name} {command.args}".rstrip(), command.summary) for command in COMMANDS]
    for each in desk.learnt:
        source = f" ({each.source})" if each.source else ""
        rows.append((f"/{each.name}", f"{cut(clean(each.what), WHAT_CELLS)}{source}"))
    desk.say("\n".join(f"{name:26} {what}" for name, what in rows))


async def leave(desk: Desk, _: str) -> None:
    """End this client; the session goes on."""
    desk.leave()


COMMANDS: tuple[Command, ...] = (
    *sessions.COMMANDS,
    *conversation.COMMANDS,
    *settings.COMMANDS,
    *accounts.COMMANDS,
    *looking.COMMANDS,
    *display.COMMANDS,
    Command("help", "this list", help_),
    Command("detach", "leave; what runs goes on", leave),
    Command("exit", "leave; what runs goes on", leave),
)
"""In the order in which `/help` lists them."""
