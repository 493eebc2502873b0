"""Commands for the model, its thinking, the approval mode and pending approvals."""

from collections.abc import Awaitable, Callable, Mapping

from zotd.client import options, slash
from zotd.wire import api
from zottui.commands.command import Command, UsageError, of
from zottui.dialogs import choose, confirm
from zottui.dialogs.listing import Entry
from zottui.ui_context import UiContext

LEVELS = {
    "off": "no thinking",
    "low": "a little thinking",
    "medium": "some thinking",
    "high": "as much thinking as needed",
}

ALL = "--all"
"""Instead of a name: choose from all models."""

MODES = {
    "yolo": "run every call without asking",
    "workspace": "run calls in a jail, ask before what leads out of it",
    "ask": "ask before calls that may change something",
    "read-only": "deny calls that may change something",
}

SAFE = "workspace"
"""The mode for those who do not want `yolo`."""


async def model(ui: UiContext, name: str) -> None:
    """Switch to the model `name`, or let the user choose from a list; `--all`: also from superseded models."""
    if name and name != ALL:
        await _set_model(ui, name, None)
        return
    session = ui.state.session
    found = await ui.ask(api.GetModels(session=of(ui), all=True, current=name != ALL), api.Models)
    now = f"{session.provider}/{session.model}" if session else ""
    chosen = await choose.ask(ui, "model", choose.models(found.models, now), selected=now)
    if chosen is not None:
        provider, _, name = chosen.partition("/")
        await _set_model(ui, name, provider)


async def _set_model(ui: UiContext, name: str, provider: str | None) -> None:
    now = await ui.ask(api.SetModel(session=of(ui), model=name, provider=provider), api.ModelName)
    context = ui.state.context
    ui.say(f"the model is now {now.model}" + (f"; it reads all {context:,} tokens again" if context else ""))


async def reasoning(ui: UiContext, level: str) -> None:
    """Set how much the model thinks, or let the user choose from a list."""
    session = ui.state.session
    await one_of(ui, LEVELS, _set_reasoning, level, what="reasoning", now=session.reasoning if session else "")


async def _set_reasoning(ui: UiContext, level: str) -> None:
    await ui.ask(api.SetReasoning(session=of(ui), reasoning=level), api.Nothing)
    ui.say(f"reasoning {level}: {LEVELS[level]}")


async def fallback(ui: UiContext, names: str) -> None:
    """Set which models are asked when the session's own fails, best first; `none` for none."""
    if not names:
        raise UsageError("name models, separated by commas, best first, or none: /fallback openai/gpt-5.5")
    wanted = options.fallback(names)
    await ui.ask(api.SessionConfigure(session=of(ui), fallback=wanted), api.SessionInfo)
    ui.say(
        f"when the model fails, the run goes on with {', then '.join(wanted)}" if wanted else "no other model is asked"
    )


async def approvals(ui: UiContext, _: str) -> None:
    """Show pending approvals again, also those that the user has postponed with tab."""
    if not ui.state.approvals:
        ui.say("no pending approvals")
    ui.ask_again()


async def mode(ui: UiContext, name: str) -> None:
    """Set the approval mode, or let the user choose from a list."""
    session = ui.state.session
    await one_of(ui, MODES, _set_mode, name, what="mode", now=session.mode if session else "")


async def _set_mode(ui: UiContext, name: str) -> None:
    await ui.ask(api.SetMode(session=of(ui), mode=name), api.Nothing)
    ui.say(f"mode {name}: {MODES[name]}")


async def next_mode(ui: UiContext) -> None:
    """Switch to the next mode of `MODES`. Before `yolo`, ask for confirmation; without it switch to the one after it."""
    session = ui.state.session
    if session is None:
        return
    names = list(MODES)
    name = names[(names.index(session.mode) + 1) % len(names)] if session.mode in names else SAFE
    if name == "yolo" and not await confirm.ask(
        ui, f"run every call without asking from now on (yolo)?\nno switches to {SAFE}"
    ):
        name = SAFE
    await _set_mode(ui, name)


async def agent_options(ui: UiContext, args: str) -> None:
    """Set an option of the other agent that runs the session, or let the user choose from lists."""
    option, _, value = args.partition(" ")
    if not value:
        found = await ui.ask(
            api.OfSession(session=of(ui)), api.AgentOptionList, command="session.agent_options", timeout_s=slash.AGENT_S
        )
        known = {one.id: one for one in found.options}
        if not known:
            raise UsageError(f"{found.agent} has no options")
        chosen: str | None = option or next(iter(known))
        if not option and len(known) > 1:
            chosen = await choose.ask(ui, found.agent, [_option_entry(one) for one in found.options])
        if chosen is None:
            return
        if chosen not in known:
            raise UsageError(f"unknown option {chosen}; choose one of: {', '.join(known)}")
        of_it = known[chosen]
        entries = [Entry(one.id, one.name, (one.detail,)) for one in of_it.values]
        picked = await choose.ask(ui, of_it.name, entries, selected=of_it.current)
        if picked is None:
            return
        option, value = chosen, picked
    params = api.AgentChoose(session=of(ui), option=option, value=value)
    await ui.ask(params, api.AgentOptionList, timeout_s=slash.AGENT_S)  # all clients are told of the change


def _option_entry(option: api.AgentOption) -> Entry:
    return Entry(option.id, option.name, (next((v.name for v in option.values if v.id == option.current), ""),))


Set = Callable[[UiContext, str], Awaitable[None]]
"""Applies the chosen value."""


async def one_of(ui: UiContext, known: Mapping[str, str], set_it: Set, word: str, *, what: str, now: str) -> None:
    """Apply `word`, or let the user choose one of `known` if it is empty.

    Raises:
        UsageError: `word` is not in `known`.
    """
    if not word:
        entries = [Entry(name, name, (meaning,)) for name, meaning in known.items()]
        chosen = await choose.ask(ui, what, entries, selected=now)
        if chosen is None:
            return
        word = chosen
    if word not in known:
        raise UsageError(f"unknown {what} {word}; choose one of: {', '.join(known)}")
    await set_it(ui, word)


async def _models(ui: UiContext) -> list[tuple[str, str]]:
    found = await ui.ask(api.GetModels(session=of(ui), all=True, current=True), api.Models)
    return [(each.id, each.provider if each.ready else f"{each.provider}, no key") for each in found.models]


async def _levels(_: UiContext) -> list[tuple[str, str]]:
    return list(LEVELS.items())


async def _modes(_: UiContext) -> list[tuple[str, str]]:
    return list(MODES.items())


COMMANDS = (
    Command("model", "switch the model", model, "[NAME|--all]", _models),
    Command("fallback", "set which models are asked when it fails", fallback, "MODELS|none", _models),
    Command("reasoning", "set how much the model thinks", reasoning, "[LEVEL]", _levels),
    Command("mode", "set which calls need your approval", mode, "[MODE]", _modes),
    Command("agent-options", "set modes and options of another agent", agent_options, "[NAME [VALUE]]"),
    Command("approvals", "show pending approvals", approvals),
)
