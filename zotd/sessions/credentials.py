"""Keys and logins of vendors: where they come from, and changes of them. No text here contains a key or a token."""

from http import HTTPStatus

from msgspec import structs

from zotd.core.ports import StorageError
from zotd.core.retry import ModelError
from zotd.logins.vendors import LoginVendor
from zotd.providers.choice import ModelChoice
from zotd.providers.shared.vendors import Vendor
from zotd.sessions.models import ModelChooser
from zotd.wire.auth import KeyCheck, KeyInfo, LoginInfo
from zotd.wire.errors import Code, CommandError
from zotd.workspace.environment import Environment

KEY_CHARS = 16 * 1024
"""Longest key; most have a hundred characters, one with claims in it a few thousand."""


def key_info(models: ModelChooser, provider: str, environment: Environment) -> KeyInfo:
    """Where a vendor's key comes from; raises CommandError when there is no such vendor."""
    vendor = models.vendor(provider)
    source, _ = next(models.found_keys(vendor, environment), (None, ""))
    stored = bool(models.stored_keys().get(vendor.name))
    info = KeyInfo(
        vendor.name,
        vendor.title,
        list(vendor.key_env),
        source,
        stored,
        own_login=vendor.own_login,
        settings=list(models.places.needed_variables(vendor)),
    )
    offer = models.logins.vendor(vendor.name)
    if offer is None:
        return info
    return structs.replace(info, methods=list(offer.methods), plan=offer.plan, login=_login_info(models, vendor))


async def check_key(models: ModelChooser, provider: str, key: str) -> KeyCheck:
    """Ask the vendor about a key; a CommandError comes out when it is none, or no such vendor wants one."""
    vendor, key = _typed(models, provider, key)
    try:
        environment = Environment({})
        url, variables = (
            models.places.filled_url(vendor.name, environment),
            models.places.variables(vendor, environment),
        )
        status = await models.providers.key_status(ModelChoice(vendor.name, "", key, url, variables=variables))
    except ModelError as error:
        return KeyCheck(vendor.title, "unreachable", f"{vendor.title} cannot be reached: {error}")
    if status == HTTPStatus.UNAUTHORIZED:  # not 403: a key may be for prompts only
        return KeyCheck(vendor.title, "refused", f"{vendor.title} refuses this key (status {status})")
    if status == HTTPStatus.OK:
        return KeyCheck(vendor.title, "accepted", f"{vendor.title} accepts this key")
    return KeyCheck(vendor.title, "unknown", f"{vendor.title} does not say whether this key is right ({status})")


def log_in(models: ModelChooser, provider: str, key: str) -> None:
    """Store a key. Blocks; a CommandError comes out when it is none, or no such vendor wants one."""
    _change(models, *_typed(models, provider, key))


def _typed(models: ModelChooser, provider: str, key: str) -> tuple[Vendor, str]:
    vendor, key = _keyed(models, provider), key.strip()
    if not 0 < len(key) <= KEY_CHARS or not (key.isascii() and key.isprintable()) or " " in key:
        raise CommandError(
            Code.BAD_REQUEST, f"this is not a key for {vendor.title}: a key has no spaces; copy it again"
        )
    return vendor, key


def login_vendor(models: ModelChooser, provider: str) -> tuple[str, LoginVendor]:
    """Return a vendor's title and how to log in to it; a CommandError comes out when it offers no login."""
    vendor = models.vendor(provider)
    offer = models.logins.vendor(vendor.name)
    if offer is None:
        raise CommandError(Code.BAD_REQUEST, f"{vendor.title} has no login by subscription; use an API key")
    return vendor.title, offer


def log_out(models: ModelChooser, provider: str) -> str:
    """Forget a stored key and a login; return what the user should know about that, or "".

    Blocks; a CommandError comes out when there is neither.
    """
    vendor = models.vendor(provider)
    try:
        note = models.logins.log_out(vendor.name)
    except StorageError as error:
        raise CommandError(Code.BLOCKED, str(error)) from error
    if note is None and models.logins.vendor(vendor.name) is not None and not vendor.key_env:
        raise CommandError(Code.NOT_FOUND, f"you are not logged in to {vendor.title}")
    if (note is None or vendor.key_env) and not _change(models, _keyed(models, provider), None) and note is None:
        raise CommandError(Code.NOT_FOUND, f"auth.json has no key for {vendor.title}; auth.list shows the stored keys")
    return note or ""


def _keyed(models: ModelChooser, provider: str) -> Vendor:
    vendor = models.vendor(provider)
    if not vendor.key_env:
        instead = f"; it uses your login of {vendor.own_login}" if vendor.own_login else ""
        if models.logins.vendor(vendor.name) is not None:
            raise CommandError(Code.BAD_REQUEST, f"{vendor.title} takes no key; run: zotctl login {vendor.name}")
        raise CommandError(Code.BAD_REQUEST, f"{vendor.title} needs no key{instead}")
    return vendor


def _change(models: ModelChooser, vendor: Vendor, key: str | None) -> bool:
    try:
        return models.keys.store(vendor.name, key)
    except StorageError as error:
        raise CommandError(Code.BLOCKED, str(error)) from error


def _login_info(models: ModelChooser, vendor: Vendor) -> LoginInfo | None:
    login = models.login(vendor)
    if login is None:
        return None
    return LoginInfo(login.account, login.logged_in_at, login.current.expires_at, login.place, login.ended)
