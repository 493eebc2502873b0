"""The slash commands of this client, for `/help`, completion and dispatch. A new one is a row of its module."""

from zottui.commands import accounts, conversation, display, looking, sessions, settings
from zottui.commands.command import Command
from zottui.ui_context import UiContext
from zottui.widgets.cells import cells, clean, cut

NAME_CELLS = 26
LINE_CELLS = 77
"""A command takes one line of a terminal of 80 columns: what an extension or a skill says about it is cut."""


async def help_(desk: UiContext, _: str) -> None:
    """List the commands; those of extensions, too."""
    rows = [(f"/{command.name} {command.args}".rstrip(), command.summary) for command in COMMANDS]
    for each in desk.learnt:
        name, source = f"/{each.name}", f" ({clean(each.source)})" if each.source else ""
        room = LINE_CELLS - max(cells(name), NAME_CELLS) - 1 - cells(source)
        rows.append((name, cut(clean(each.what), max(room, 0)) + source))
    desk.say("\n".join(f"{name:{NAME_CELLS}} {what}" for name, what in rows))


async def leave(desk: UiContext, _: str) -> None:
    """End this client; the session goes on."""
    desk.leave()


COMMANDS: tuple[Command, ...] = (
    *sessions.COMMANDS,
    *conversation.COMMANDS,
    *settings.COMMANDS,
    *accounts.COMMANDS,
    *looking.COMMANDS,
    *display.COMMANDS,
    Command("help", "list the commands", help_),
    Command("detach", "leave; runs continue", leave),
    Command("exit", "leave; runs continue", leave),
)
"""In the order in which `/help` lists them."""
