"""What a session runs on, and what follows from it: the address, the key, the client of an SDK."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from msgspec.structs import replace

from zotd.core.retry import Failure, ModelError
from zotd.providers.catalog import LOCAL
from zotd.providers.shared import NO_KEY, Access, Destination, KeyHeader, Vendor
from zotd.providers.shared.placeholders import PlaceholderError, filled

OPENAIS: Mapping[str, str] = {"chat": "openai", "responses": "responses"}
"""The two APIs of OpenAI and its imitators, by the name that a user chooses one with."""

OPENAI_PATH = "/v1"
"""Where servers have these two APIs."""

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
"""Hosts that no proxy can reach for us, whatever the environment says."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """What a session runs on."""

    provider: str
    model: str
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    """Instead of the vendor's own; such a server is asked without a key when none is given."""
    api: str | None = None
    """`chat` or `responses`, where the vendor speaks either; None: Responses for models of OpenAI at its own URL."""
    access: Access | None = field(default=None, repr=False)
    """A login, instead of a key."""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)  # compared, but has no hash
    """Environment variables that the vendor's requests depend on: `Vendor.variables`."""


def speaking_ollama(vendor: Vendor, choice: ModelChoice) -> Vendor:
    """Return Ollama with the API in which it is asked: OpenAI's if the base URL ends in `/v1`, or a setting says so."""
    chosen = OPENAIS.get(choice.api or "")
    url = (choice.base_url or vendor.base_url).rstrip("/")
    if chosen is None and not url.endswith(OPENAI_PATH):
        return vendor
    return replace(vendor, api=chosen or OPENAIS["chat"], base_url=url.removesuffix(OPENAI_PATH) + OPENAI_PATH)


def destination(vendor: Vendor, base_url: str, api_key: str, variables: Mapping[str, str]) -> Destination:
    """Return what the SDK's client is made for."""
    login = tuple((name, variables[name]) for name in vendor.login_env if name in variables)
    use_proxy = urlsplit(base_url).hostname not in LOOPBACK
    return Destination(base_url, api_key, use_proxy, KeyHeader(vendor.key_header, vendor.key_prefix), login)


def url_of(vendor: Vendor, choice: ModelChoice) -> str | None:
    """Return where the vendor is asked; None: the local server says it. Raises ModelError."""
    if choice.base_url is None and vendor.name == LOCAL:
        return None
    try:
        url = choice.base_url or filled(vendor.base_url, choice.variables)
    except PlaceholderError as error:
        sentence = f"{vendor.title} has no address: {error}, or set providers.{vendor.name}.base_url in config.toml"
        raise ModelError(Failure.REFUSED, sentence) from error
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise ModelError(
            Failure.REFUSED, f"{url} is not a base URL for {vendor.title}; it must begin with https:// or http://"
        )
    if choice.base_url is not None and vendor.api in OPENAIS.values() and not urlsplit(url).path.strip("/"):
        return url.rstrip("/") + OPENAI_PATH  # people leave that out
    return url


def key_of(vendor: Vendor, choice: ModelChoice) -> str:
    """Return the key for requests, `NO_KEY` if none is needed. Raises ModelError."""
    key = (choice.api_key or "").strip()
    if not key and vendor.key_env and choice.base_url is None and choice.access is None:
        raise ModelError(Failure.NO_KEY, f"there is no API key for {vendor.title}; {vendor.key_ways}")
    if not key.isascii() or not key.isprintable():
        raise ModelError(
            Failure.AUTH, f"the API key for {vendor.title} has characters that no key can have; copy it again"
        )
    return key or NO_KEY
