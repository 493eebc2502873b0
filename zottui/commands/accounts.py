"""Commands for the API keys of providers, and for logins by subscription."""

import asyncio
import os

from zotd.client import web_browser
from zotd.client.environment import HOST
from zotd.client.errors import CallError, ClientError
from zotd.wire import api, auth
from zottui.commands.command import Command, UsageError
from zottui.dialogs import choose, confirm, waiting
from zottui.dialogs import input as line
from zottui.dialogs.listing import Entry
from zottui.ui_context import UiContext


async def login(ui: UiContext, provider: str) -> None:
    """Log in by subscription if the provider offers that; else ask for its API key, hidden while typed, and check it."""
    known = await _known(ui)
    usable = [each for each in known if each.variables or each.methods]
    provider = provider or await _one_of(ui, "log in to", usable) or ""
    if not provider:
        return
    chosen = next((each for each in usable if each.provider == provider), None)
    if chosen is None:
        raise UsageError(f"unknown provider {provider}; choose one of: {', '.join(each.provider for each in usable)}")
    if chosen.methods:
        if await _subscribe(ui, chosen):
            await _use(ui, chosen, known)
        return
    key = await line.ask(ui, f"API key for {provider}", is_secret=True)
    if key is None or not await _is_to_be_kept(ui, provider, key):
        return
    kept = await ui.administer(auth.Login(provider, key), auth.KeyInfo)
    ui.say(f"saved the key for {kept.title} in auth.json", "success")
    await _use(ui, kept, known)


async def _use(ui: UiContext, kept: auth.KeyInfo, known: list[auth.KeyInfo]) -> None:
    """Switch the session to the provider that now has a key, if its own has none."""
    session = ui.state.session
    keyed = {each.provider for each in known if each.variables or each.methods}
    has_none = {each.provider for each in known if each.source is None} & keyed - {kept.provider}
    # The session's model belongs to a provider without a key, so it cannot run. Switch to the provider that has one now.
    if session is not None and session.provider in has_none:
        params = api.SessionConfigure(session=session.id, provider=kept.provider)
        configured = await ui.ask(params, api.SessionInfo)
        ui.say(f"the model is now {configured.model}; /model changes it")


async def _subscribe(ui: UiContext, vendor: auth.KeyInfo) -> bool:
    """Show what to do on the provider's page and wait until it is done; False if it failed or was cancelled."""
    is_here = web_browser.is_here(os.environ) and not os.environ.get(HOST)
    method = vendor.methods[0] if is_here or "device" not in vendor.methods else "device"
    begun = await ui.administer(auth.LoginBegin(vendor.provider, method), auth.LoginBegun)
    ui.say(f"log in on this page: {begun.full_url or begun.url}")
    if is_here:
        await asyncio.to_thread(web_browser.open_page, begun.full_url or begun.url, os.environ)
    what = f"enter the code {begun.code} on the page" if begun.code else "log in on the page"
    async with asyncio.TaskGroup() as group:
        outcome = group.create_task(_outcome(ui, begun.login))
        shown = group.create_task(waiting.ask(ui, f"{vendor.title}: {what}\n{begun.url}"))
        await asyncio.wait([outcome, shown], return_when=asyncio.FIRST_COMPLETED)
        shown.cancel()
        if not outcome.done():
            outcome.cancel()
    if outcome.cancelled():
        await ui.administer(auth.LoginCancel(begun.login), api.Nothing)
        ui.say(f"the login to {vendor.title} was cancelled")
        return False
    found = outcome.result()
    if found.state != "done":
        ui.say(f"the login to {vendor.title} failed: {found.sentence}", "error")
        return False
    ui.say(f"logged in to {vendor.title}", "success")
    return True


async def _outcome(ui: UiContext, login: str) -> auth.LoginOutcome:
    """Wait for the end of a login; the daemon ends it when its time is over."""
    while True:
        try:
            found = await ui.administer(auth.LoginWait(login), auth.LoginOutcome)
        except ClientError as error:
            return auth.LoginOutcome("failed", str(error))
        if found.state != "pending":
            return found


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
    """Delete a provider's API key from auth.json and end a login; keys in environment variables stay."""
    known = await _known(ui)
    stored = [each for each in known if each.stored or each.login is not None]
    if not stored:
        ui.say("auth.json has no keys, and you are not logged in anywhere")
        return
    provider = provider or await _one_of(ui, "log out of", stored) or ""
    if provider:
        kept = await ui.administer(auth.Logout(provider), auth.KeyInfo)
        is_login = any(each.provider == kept.provider and each.login is not None for each in known)
        what = f"logged out of {kept.title}" if is_login else f"deleted the key for {kept.title}"
        ui.say(what + (f"; {kept.source} still provides one" if kept.source else ""))
        if kept.note:
            ui.say(kept.note)


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
    Command("login", "log in to a provider, or save its API key", login, "[PROVIDER]", _providers),
    Command("logout", "delete a provider's API key, or end a login", logout, "[PROVIDER]", _providers),
)
