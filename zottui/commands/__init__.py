"""The slash commands of the terminal client, for `/help`, completion and dispatch.

Each module of this package has a table of its commands. To add one, add a row to the table, and its
name to `OF_CLIENTS` in `zotd/sessions/slash_commands.py`, so that no extension can take it.
"""

from zottui.commands import accounts, conversation, display, files, looking, sessions, settings
from zottui.commands.command import Command
from zottui.ui_context import UiContext
from zottui.widgets.cells import cells, clean, cut

NAME_CELLS = 26
LINE_CELLS = 77
"""Width of a command's line in `/help`, for a terminal of 80 columns. Longer descriptions of extensions are cut."""


async def help_(ui: UiContext, _: str) -> None:
    """List all commands, with those of extensions and skills."""
    rows = [(f"/{command.name} {command.args}".rstrip(), command.summary) for command in COMMANDS]
    for each in ui.learnt:
        name, source = f"/{each.name}", f" ({clean(each.source)})" if each.source else ""
        room = LINE_CELLS - max(cells(name), NAME_CELLS) - 1 - cells(source)
        rows.append((name, cut(clean(each.what), max(room, 0)) + source))
    ui.say("\n".join(f"{name:{NAME_CELLS}} {what}" for name, what in rows))


async def leave(ui: UiContext, _: str) -> None:
    """End this client; the session and its runs continue in the daemon."""
    ui.leave()


COMMANDS: tuple[Command, ...] = (
    *sessions.COMMANDS,
    *conversation.COMMANDS,
    *files.COMMANDS,
    *settings.COMMANDS,
    *accounts.COMMANDS,
    *looking.COMMANDS,
    *display.COMMANDS,
    Command("help", "list the commands", help_),
    Command("detach", "leave; runs continue", leave),
    Command("exit", "leave; runs continue", leave),
)
"""All commands in the order of `/help`."""
