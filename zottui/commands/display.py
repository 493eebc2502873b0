"""Commands that change how this terminal looks and what it shows."""

from zotd.wire import api
from zottui.commands.command import Command, UsageError, of
from zottui.commands.settings import one_of
from zottui.theme import THEMES
from zottui.ui_context import UiContext

THEME_WORDS = {
    "default": "the terminal's own 16 colours",
    "dark": "for a dark background",
    "light": "for a light background",
    "plain": "no colours",
}


async def theme(ui: UiContext, name: str) -> None:
    """Switch the theme for everything that is drawn from now on; the scrollback keeps its colours."""
    await one_of(ui, THEME_WORDS, _set_theme, name, what="theme", now=ui.theme.name)


async def _set_theme(ui: UiContext, name: str) -> None:
    ui.use_theme(ui.theme.in_colours_of(THEMES[name]))
    ui.say(f'theme {name}; to keep it, set theme = "{name}" under [terminal] in config.toml')


async def thinking(ui: UiContext, what: str) -> None:
    """Show the text of the model's thinking, or only its duration. Without an argument: the other of the two."""
    shows = {"": not ui.state.shows_thoughts, "show": True, "hide": False}.get(what)
    if shows is None:
        raise UsageError(f"/thinking takes show or hide, not {what}")
    ui.show_thoughts(shows=shows)
    ui.say("thinking is shown from now on" if shows else "thinking is hidden from now on")


async def status(ui: UiContext, _: str) -> None:
    """Print the session's id, directory, model, mode and state."""
    session = await ui.ask(api.OfSession(of(ui)), api.SessionInfo, command="session.get")
    rows = {
        "session": f"{session.name} {session.id}".strip(),
        "directory": session.cwd,
        "branch": ui.state.branch or "none",
        "model": f"{session.provider}/{session.model}, reasoning {session.reasoning}",
        "mode": session.mode,
        "state": session.state,
        "messages": f"{session.message_count:,}",
        "theme": ui.theme.name,
    }
    if session.mode == "workspace":
        rows["jail"] = session.jail or "made when a call needs it"
    if session.fallback:
        rows["fallback"] = f"{session.fallback} answers until the model is back"
    ui.say("\n".join(f"{what:10} {value}" for what, value in rows.items()))


COMMANDS = (
    Command("theme", "change the colours", theme, "[NAME]"),
    Command("thinking", "show or hide the model's thinking", thinking, "[show|hide]"),
    Command("status", "show the session's state and settings", status),
)
