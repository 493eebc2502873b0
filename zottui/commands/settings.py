"""Commands about the model, what it may do, and keys."""

from collections.abc import Awaitable, Callable, Mapping

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

MODES = {
    "yolo": "run every call without asking",
    "ask": "ask before calls that may change something",
    "read-only": "deny calls that may change something",
}


async def model(desk: UiContext, name: str) -> None:
    """Switch the model, or choose one from a list."""
    if name:
        await _set_model(desk, name, None)
        return
    session = desk.state.session
    found = await desk.ask(api.GetModels(session=of(desk), all=True), api.Models)
    now = f"{session.provider}/{session.model}" if session else ""
    chosen = await choose.ask(desk, "model", choose.models(found.models, now), selected=now)
    if chosen is not None:
        provider, _, name = chosen.partition("/")
        await _set_model(desk, name, provider)


async def _set_model(desk: UiContext, name: str, provider: str | None) -> None:
    now = await desk.ask(api.SetModel(session=of(desk), model=name, provider=provider), api.ModelName)
    context = desk.state.context
    desk.say(f"the model is now {now.model}" + (f"; it reads all {context:,} tokens again" if context else ""))


async def reasoning(desk: UiContext, level: str) -> None:
    """Say how much it may think."""
    session = desk.state.session
    await one_of(desk, LEVELS, _set_reasoning, level, what="reasoning", now=session.reasoning if session else "")


async def _set_reasoning(desk: UiContext, level: str) -> None:
    await desk.ask(api.SetReasoning(session=of(desk), reasoning=level), api.Nothing)
    desk.say(f"reasoning {level}: {LEVELS[level]}")


async def approvals(desk: UiContext, _: str) -> None:
    """Open the questions that were put off."""
    if not desk.state.approvals:
        desk.say("no pending approvals")
    desk.ask_again()


async def mode(desk: UiContext, name: str) -> None:
    """Say which calls a person is asked about."""
    session = desk.state.session
    await one_of(desk, MODES, _set_mode, name, what="mode", now=session.mode if session else "")


async def _set_mode(desk: UiContext, name: str) -> None:
    await desk.ask(api.SetMode(session=of(desk), mode=name), api.Nothing)
    desk.say(f"mode {name}: {MODES[name]}")


async def next_mode(desk: UiContext) -> None:
    """The mode behind the one that holds; the one that asks about nothing only after a yes, and else `ask`."""
    session = desk.state.session
    if session is None:
        return
    names = list(MODES)
    name = names[(names.index(session.mode) + 1) % len(names)] if session.mode in names else "ask"
    if name == "yolo" and not await confirm.ask(
        desk, "run every call without asking from now on (yolo)?\nno switches to ask"
    ):
        name = "ask"
    await _set_mode(desk, name)


Set = Callable[[UiContext, str], Awaitable[None]]
"""Carries out what was chosen."""


async def one_of(desk: UiContext, known: Mapping[str, str], set_it: Set, word: str, *, what: str, now: str) -> None:
    """Take the word that was typed, or let one be chosen; `now` is the one that holds.

    Raises:
        UsageError: it is none of those that are known.
    """
    if not word:
        entries = [Entry(name, name, (meaning,)) for name, meaning in known.items()]
        chosen = await choose.ask(desk, what, entries, selected=now)
        if chosen is None:
            return
        word = chosen
    if word not in known:
        raise UsageError(f"unknown {what} {word}; choose one of: {', '.join(known)}")
    await set_it(desk, word)


async def _models(desk: UiContext) -> list[tuple[str, str]]:
    found = await desk.ask(api.GetModels(session=of(desk), all=True), api.Models)
    return [(each.id, each.provider if each.ready else f"{each.provider}, no key") for each in found.models]


async def _levels(_: UiContext) -> list[tuple[str, str]]:
    return list(LEVELS.items())


async def _modes(_: UiContext) -> list[tuple[str, str]]:
    return list(MODES.items())


COMMANDS = (
    Command("model", "switch the model", model, "[NAME]", _models),
    Command("reasoning", "set how much the model thinks", reasoning, "[LEVEL]", _levels),
    Command("mode", "set which calls need your approval", mode, "[MODE]", _modes),
    Command("approvals", "show pending approvals", approvals),
)
