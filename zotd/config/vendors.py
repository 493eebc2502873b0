"""Schema of `[providers.<name>]` and `[[models]]`: rows that the user adds to the vendors and models of the catalog.

The strings below the fields of `ProviderSection` are their documentation, as in `zotd.config.sections`.
"""

import re
from typing import Annotated, Literal

from msgspec import Meta, Struct

from zotd.config.kinds import Cents, Count, Fields, Flag, Headers, Names, Url

_CREDENTIAL = re.compile(r"(authorization|cookie|key|secret|token|password)$", re.IGNORECASE)


class ProviderSection(Struct, frozen=True, kw_only=True):
    """`[providers.<name>]`: changes a vendor of the catalog, or adds one. Fields that are not set keep their value."""

    base_url: Url | None = None
    """Base URL for this vendor's requests; API keys from the environment and `auth.json` are sent to it. `{NAME}` is
    replaced by an environment variable that is a single label of a host name, such as a region. Default: the vendor's own.
    """

    dialect: Literal["anthropic", "openai", "ollama"] | None = None
    """API of a vendor that the catalog does not know: `anthropic` (Messages), `openai` (see `api`) or `ollama` (its own).
    Default: `openai`."""

    api: Literal["chat", "responses"] | None = None
    """Which of OpenAI's APIs this vendor's models are asked in: `chat` (Chat Completions) or `responses` (Responses).
    Default: `responses` for `openai` at its own URL, `chat` for all other vendors and URLs that speak either. Ollama is
    asked in its own API, or in `chat` if the base URL ends in `/v1`."""

    login_url: Url | None = None
    """Scheme and host of the server for logins by subscription, such as a proxy of yours. Default: the vendor's own."""

    client_id: str | None = None
    """Client ID for logins by subscription, if you have registered one with the vendor. Default: the vendor's public one."""

    label: str | None = None
    """Name in messages and lists."""

    key_env: Names | None = None
    """Environment variables that may hold the API key; the first one that is set is used. Tools do not see them. Default
    for a new vendor: none, which means that no key is needed."""

    key_header: str | None = None
    """Header that carries the key. Default: `Authorization: Bearer KEY` (`openai`), `x-api-key: KEY` (`anthropic`)."""

    key_prefix: str | None = None
    """Text before the key in `key_header`, such as `"Bearer "`."""

    headers: Headers | None = None
    """Further headers of each request. They must not contain secrets."""

    default_model: str | None = None
    """Model to use when none is named."""

    context_window: Count | None = None
    """Context window of models that the catalog does not know, in tokens. It is what requests ask Ollama for (`num_ctx`), up
    to what a model was made for. Default for Ollama: the model's own `num_ctx`, else 32768."""

    prices: str | None = None
    """ID of the vendor in the data of `genai-prices` whose models and prices apply."""

    max_tokens_field: str | None = None
    """Field of a request that limits the reply: `max_tokens` or `max_completion_tokens`."""

    stream_options: Flag | None = None
    """Send `stream_options`, without which most vendors report no token counts."""

    reasoning_style: Literal["", "effort", "object"] | None = None
    """How a request sets the reasoning effort: `effort` (`reasoning_effort`), `object` (`reasoning.effort`), or not at all.
    """

    echo_reasoning: Flag | None = None
    """Send `reasoning_content` back with each earlier reply."""

    short_call_ids: Flag | None = None
    """Send call IDs of nine characters."""

    thought_signatures: Flag | None = None
    """Send the signatures of tool calls back, as Gemini requires."""

    keep_alive: Flag | None = None
    """Keep connections open between requests."""

    extra: Fields | None = None
    """Further fields of each request, such as Ollama's `keep_alive`."""

    def __post_init__(self) -> None:
        for name in self.headers or ():
            if _CREDENTIAL.search(name):
                raise ValueError(
                    f"providers: the header {name} looks like a secret; set key_header, and store the key with zotctl login"
                )
        options = (self.extra or {}).get("options")
        if isinstance(options, dict) and "num_ctx" in options:
            raise ValueError("providers: extra.options.num_ctx has no effect; set context_window instead")


class ModelPrices(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`prices` of `[[models]]`, in USD for a million tokens. Tokens of the cache cost as much as others by default."""

    input: Cents
    output: Cents
    cache_read: Cents | None = None
    cache_write: Cents | None = None
    cache_write_hour: Cents | None = None
    """Of tokens that are written for an hour. Default: 1.6 times `cache_write` if that is set, as at Anthropic."""


class ModelEntry(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of `[[models]]`. Absent fields are as the catalog has them.

    Unknown fields are errors: a misspelt limit would otherwise have no effect.
    """

    provider: Annotated[str, Meta(min_length=1)]
    id: Annotated[str, Meta(min_length=1)]
    context_window: Count | None = None
    """Tokens of a prompt and its reply together; compaction is based on it."""
    max_output: Count | None = None
    """Tokens of a reply."""
    reasoning: Flag | None = None
    images: Flag | None = None
    """False: images are replaced by a text before a request is sent."""
    tools: Flag | None = None
    """False: no tools are sent."""
    prices: ModelPrices | None = None


ModelEntries = Annotated[
    tuple[ModelEntry, ...],
    Meta(
        title="[[models]] tables with provider, id and optionally context_window, max_output, reasoning, images, tools "
        "and prices"
    ),
]
