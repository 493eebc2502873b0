"""Commands for the API keys of providers."""

from zotd.client.errors import CallError
from zotd.wire import api, auth
from zottui.commands.command import Command, UsageError
from zottui.dialogs import choose, confirm
from zottui.dialogs import input as line
from zottui.dialogs.listing import Entry
from zottui.ui_context import UiContext


async def login(ui: UiContext, provider: str) -> None:
    """Ask for a provider's API key, hidden while typed, check it with the provider and save it in auth.json."""
    known = await _known(ui)
    provider = provider or await _one_of(ui, "log in to", [each for each in known if each.variables]) or ""
    if not provider:
        return
    names = [each.provider for each in known if each.variables]
    if provider not in names:
        raise UsageError(f"unknown provider {provider}; choose one of: {', '.join(names)}")
    key = await line.ask(ui, f"API key for {provider}", is_secret=True)
    if key is None or not await _is_to_be_kept(ui, provider, key):
        return
    kept = await ui.administer(auth.Login(provider, key), auth.KeyInfo)
    ui.say(f"saved the key for {kept.title} in auth.json", "success")
    session = ui.state.session
    has_none = {each.provider for each in known if each.variables and each.source is None} - {kept.provider}
    # The session's model belongs to a provider without a key, so it cannot run. Switch to the provider that has one now.
    if session is not None and session.provider in has_none:
        params = api.SessionConfigure(session=session.id, provider=kept.provider)
        configured = await ui.ask(params, api.SessionInfo)
        ui.say(f"the model is now {configured.model}; /model changes it")


async def _is_to_be_kept(ui: UiContext, provider: str, key: str) -> bool:
    """Return whether to save the key: yes if the provider accepts it, else the user decides when it cannot be reached."""
    try:
        found = await ui.administer(auth.CheckKey(provider, key), auth.KeyCheck)
    except CallError as error:
        # An older daemon does not know the command. For a malformed key, `auth.login` reports the same error again.
        if error.code != "bad_request":
            raise
        return True
    match found.outcome:
        case "refused":
            ui.say(f"{found.sentence}; the key was not saved. Copy it again and run /login {provider}", "error")
            return False
        case "unreachable":
            return await confirm.ask(ui, f"{found.sentence}\nsave the key without a check?")
        case _:
            return True


async def logout(ui: UiContext, provider: str) -> None:
    """Delete a provider's API key from auth.json; keys in environment variables stay."""
    stored = [each for each in await _known(ui) if each.stored]
    if not stored:
        ui.say("auth.json has no keys")
        return
    provider = provider or await _one_of(ui, "log out of", stored) or ""
    if provider:
        kept = await ui.administer(auth.Logout(provider), auth.KeyInfo)
        ui.say(f"deleted the key for {kept.title}" + (f"; {kept.source} still provides one" if kept.source else ""))


async def _known(ui: UiContext) -> list[auth.KeyInfo]:
    session = ui.state.session
    scope = auth.AuthScope(None if session is None else session.id)
    return (await ui.ask(scope, auth.KeyList)).providers


async def _one_of(ui: UiContext, title: str, known: list[auth.KeyInfo]) -> str | None:
    entries = [Entry(each.provider, each.title, (each.source or "", ", ".join(each.variables))) for each in known]
    return await choose.ask(ui, title, entries)


async def _providers(ui: UiContext) -> list[tuple[str, str]]:
    return [(each.provider, each.title) for each in await _known(ui)]


COMMANDS = (
    Command("login", "save a provider's API key", login, "[PROVIDER]", _providers),
    Command("logout", "delete a provider's API key", logout, "[PROVIDER]", _providers),
)
