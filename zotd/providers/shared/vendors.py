"""What an API module needs to know of a vendor, a model and the place where it is served."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import NamedTuple, Protocol
from urllib.parse import urlsplit

import msgspec

from zotd.core.ports import ModelRequest
from zotd.core.reply import Part
from zotd.providers.shared.placeholders import names
from zotd.wire.api import ModelInfo
from zotd.wire.base import Frozen

CONNECT_S = 15.0
"""Longest wait for a connection, TLS included; a working one takes less than 1 s, a bad Wi-Fi several."""

SILENCE_S = 300.0
"""Longest wait for the next bytes, the first included. Models think for minutes without a word, but vendors send
pings or headers meanwhile; a connection that is silent for longer is dead."""

DRAIN_S = 0.25
"""Longest wait for a response's end after its last event; then the connection is given up instead of used again."""

NO_KEY = "none"
"""Stands for a key where none is needed: the SDKs insist on one."""


class Vendor(Frozen, frozen=True, kw_only=True):
    """A company or program that serves models, and how its API differs from the one that it imitates."""

    name: str
    label: str = ""
    """The name for users; `name` if empty."""
    api: str = "openai"
    """`anthropic` (Messages), `openai` (Chat Completions), `responses` (OpenAI's Responses), `ollama` (its own), or a name
    of `connect.EXTRAS`."""
    base_url: str
    """May have placeholders for environment variables: see `placeholders`."""
    key_env: tuple[str, ...] = ()
    """Environment variables that may hold the key, the first one that is set wins; none: no key is needed."""
    key_header: str = ""
    """The header that carries the key, if it is not the one of the SDK."""
    key_prefix: str = ""
    """What stands before the key in `key_header`."""
    own_login: str = ""
    """Where the SDK finds credentials itself, instead of a key; empty: nowhere."""
    login_ways: str = ""
    """How to log in there, as a part of a sentence."""
    login_env: tuple[str, ...] = ()
    """Variables of the client's environment that the SDK's own login gets."""
    requires: str = ""
    """A Python package that the vendor needs and that is not installed by default; the extra is called like `api`."""
    default_model: str = ""
    aliases: tuple[str, ...] = ()
    prices: str = ""
    """The vendor's id in the data of `genai-prices`; empty: not in it."""
    listed: str = ""
    """A pattern for the ids of its models in that data; its first group is the id that the vendor uses."""
    window: int = 0
    """Context window of models of which that data knows none: the least that the vendor has, so that compaction is in time.
    At Ollama: what its requests ask for."""
    subscription: bool = False
    """Requests are paid by a subscription, so they cost nothing, whatever that data says."""
    any_model: bool = False
    """Serves models under names that users give them, so that the catalog cannot know all of them."""
    max_tokens_field: str = "max_tokens"
    stream_options: bool = True
    """Takes `stream_options`, without which most vendors send no token counts."""
    reasoning_style: str = ""
    """How it is told to think: `effort` (`reasoning_effort`), `object` (`reasoning: {effort}`), or not at all."""
    echo_reasoning: bool = False
    """Wants the model's `reasoning_content` back with each message of the transcript."""
    short_call_ids: bool = False
    """Takes only call ids of nine letters and digits."""
    thought_signatures: bool = False
    """Wants the signature of a call back in `extra_content`, as Gemini does; refuses calls without one."""
    initiator: bool = False
    """Is told whether a person or the agent made a request, and whether it has images, as GitHub Copilot wants."""
    context_from: str = ""
    """How its server tells the size of the context window of a model that it has loaded: see `served`."""
    keep_alive: bool = True
    """Its server keeps a connection that it said to keep; llama.cpp's closes it after a stream without a word."""
    extra: dict[str, object] = msgspec.field(default_factory=dict)
    """Fields put into every request."""
    extra_headers: dict[str, str] = msgspec.field(default_factory=dict)
    """Headers put into every request."""

    @property
    def title(self) -> str:
        """The name of the vendor in sentences."""
        return self.label or self.name

    @property
    def headers(self) -> dict[str, str]:
        """What every request carries besides the SDK's headers."""
        connection = {} if self.keep_alive else {"Connection": "close"}
        return {"Content-Type": "application/json", **connection, **self.extra_headers}

    @property
    def is_free(self) -> bool:
        """Its requests are not paid one by one, so a model without a known price costs nothing."""
        return self.subscription or not (self.key_env or self.own_login)

    @property
    def asks_for_context(self) -> bool:
        """Its requests say how large the context window is to be."""
        return self.api == "ollama"

    @property
    def serves_unknown(self) -> bool:
        """A model that the catalog does not know is likely to be there."""
        return self.any_model or not self.key_env

    @property
    def missing_package(self) -> str:
        """How to install what the vendor requires, as an instruction; empty if it is there."""
        package, _, module = self.requires.partition(".")
        if not package or (find_spec(package) and (not module or find_spec(self.requires))):
            return ""
        return f"install its packages with pip install 'zotd[{self.api}]', then run zotctl restart"

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables, besides keys, that its requests depend on."""
        return (*names(self.base_url), *self.login_env)

    @property
    def key_ways(self) -> str:
        """How to give a key, or to log in, as a part of a sentence."""
        if self.own_login:
            return self.login_ways
        variable = f"set {self.key_env[0]}, " if self.key_env else ""
        return f"{variable}pass --api-key or run: zotctl login {self.name}"


class Access(Protocol):
    """What a vendor takes instead of a key, and how it is renewed: a login."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of a request, the secret among them; valid after `prepare`, and other ones after `renew`."""
        ...

    @property
    def base_url(self) -> str:
        """Where this account's requests go; empty: to the vendor's usual URL. Valid after `prepare`."""
        ...

    async def prepare(self) -> None:
        """Make `headers` valid for a request. Raises ModelError."""
        ...

    async def renew(self, refused: Mapping[str, str]) -> None:
        """Get other headers than these, which the vendor has refused. Raises ModelError."""
        ...


class KeyHeader(NamedTuple):
    """The header that carries a key; without a name it is the SDK's own."""

    name: str = ""
    prefix: str = ""


SDK_KEY_HEADER = KeyHeader()
"""The SDK's own."""


@dataclass(frozen=True, slots=True)
class Destination:
    """What the client of an SDK is made for."""

    base_url: str
    api_key: str = field(repr=False)
    use_proxy: bool
    """Take the proxies of the environment (`HTTPS_PROXY`, `NO_PROXY`, ...)."""
    key_header: KeyHeader = SDK_KEY_HEADER
    login: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Names and values of `Vendor.login_env`."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a conversation goes."""

    vendor: Vendor
    base_url: str
    model: ModelInfo
    access: Access | None = field(default=None, repr=False)
    """Instead of the key of the SDK's client."""

    @property
    def headers(self) -> Mapping[str, str]:
        """What the next request carries besides the SDK's headers."""
        return self.vendor.headers if self.access is None else {**self.vendor.headers, **self.access.headers}

    def with_headers(self, further: Mapping[str, str]) -> "Target":
        """The same target for a request with further headers."""
        if not further:
            return self
        headers = {**self.vendor.extra_headers, **further}
        return Target(
            msgspec.structs.replace(self.vendor, extra_headers=headers), self.base_url, self.model, self.access
        )

    @property
    def author(self) -> str:
        """Who writes what only this model can read again: vendor and model."""
        return f"{self.vendor.name}/{self.model.id}"

    @property
    def is_imitation(self) -> bool:
        """The server only imitates OpenAI, and may do what OpenAI's own never does."""
        return urlsplit(self.base_url).hostname != "api.openai.com"


class VendorConversation(Protocol):
    """The model calls of one run; remembers how it encoded the transcript."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[Part], None]:
        """See `core.ports.Model.stream`."""
        ...


class VendorClient(Protocol):
    """A vendor SDK's client, bound to a URL and a key; shared by runs."""

    def open(self, target: Target) -> VendorConversation:
        """A conversation for one run."""
        ...

    async def status(self, vendor: Vendor) -> int:
        """The HTTP status of a request that costs nothing: the list of models. Raises ModelError: no answer."""
        ...

    async def look(self, url: str, limit: int, question: bytes = b"") -> bytes:
        """The beginning of what is at a URL of the same server; empty if there is nothing. `question` is sent by POST."""
        ...

    async def close(self) -> None:
        """Close its connections; conversations that still stream fail."""
        ...
