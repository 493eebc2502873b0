"""What an API module needs to know of a vendor, a model and the place where it is served."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from zotd.core.ports import ModelRequest
from zotd.core.reply import Part
from zotd.wire.api import ModelInfo
from zotd.wire.base import Frozen

CONNECT_S = 15.0
"""Longest wait for a connection, TLS included; a working one takes less than 1 s, a bad Wi-Fi several."""

SILENCE_S = 300.0
"""Longest wait for the next bytes, the first included. Models think for minutes without a word, but vendors send
pings or headers meanwhile; a connection that is silent for longer is dead."""

DRAIN_S = 0.25
"""Longest wait for a response's end after its last event; then the connection is given up instead of used again."""


class Vendor(Frozen, frozen=True, kw_only=True):
    """A company or program that serves models, and how its API differs from the one that it imitates."""

    name: str
    label: str = ""
    """The name for users; `name` if empty."""
    api: str = "openai"
    """`anthropic` (Messages), `openai` (Chat Completions) or `responses` (OpenAI's Responses)."""
    base_url: str
    key_env: tuple[str, ...] = ()
    """Environment variables that may hold the key, the first one that is set wins; none: no key is needed."""
    default_model: str = ""
    aliases: tuple[str, ...] = ()
    prices: str = ""
    """The vendor's id in the data of `genai-prices`; empty: not in it."""
    max_tokens_field: str = "max_tokens"
    stream_options: bool = True
    """Takes `stream_options`, without which most vendors send no token counts."""
    reasoning_style: str = ""
    """How it is told to think: `effort` (`reasoning_effort`), `object` (`reasoning: {effort}`), or not at all."""
    echo_reasoning: bool = False
    """Wants the model's `reasoning_content` back with each message of the transcript."""
    short_call_ids: bool = False
    """Takes only call ids of nine letters and digits."""
    keep_alive: bool = True
    """Its server keeps a connection that it said to keep; llama.cpp's closes it after a stream without a word."""
    extra: dict[str, object] = msgspec.field(default_factory=dict)
    """Fields put into every request."""

    @property
    def title(self) -> str:
        """The name of the vendor in sentences."""
        return self.label or self.name

    @property
    def headers(self) -> dict[str, str]:
        """What every request carries besides the SDK's headers."""
        return {"Content-Type": "application/json"} | ({} if self.keep_alive else {"Connection": "close"})

    @property
    def key_ways(self) -> str:
        """How to give a key, as a part of a sentence."""
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

    async def status(self) -> int:
        """The HTTP status of a request that costs nothing: the list of models. Raises ModelError: no answer."""
        ...

    async def close(self) -> None:
        """Close its connections; conversations that still stream fail."""
        ...
