"""What the clients of Anthropic's SDK have in common: its own host, Bedrock and Vertex."""

from collections.abc import Mapping
from functools import partial
from typing import cast

import anthropic
import httpx2

from zotd.core.records import CacheLife
from zotd.providers.anthropic.reply import ReplyReader
from zotd.providers.anthropic.request import RequestWriter
from zotd.providers.shared import CONNECT_S, SILENCE_S, Destination, Target, Vendor
from zotd.providers.shared.conversation import SdkErrors, StatusError, bounded
from zotd.providers.shared.http import tls_context

Client = anthropic.AsyncAnthropic | anthropic.AsyncAnthropicBedrockMantle | anthropic.AsyncAnthropicVertex
"""A client of the SDK, which has no public base class for them."""


class AnthropicSdk:
    """Anthropic's SDK for one destination."""

    name = "Anthropic's SDK"
    repeats = True
    errors = SdkErrors(
        status=cast("type[StatusError]", anthropic.APIStatusError),
        timeout=anthropic.APITimeoutError,
        connection=anthropic.APIConnectionError,
        base=anthropic.AnthropicError,
    )

    def __init__(self, client: Client, http: httpx2.AsyncClient, *, names_model: bool = True) -> None:
        """`client` uses `http`; both are closed with this one. `names_model`: as in `RequestWriter`."""
        self.http = http
        refused: set[tuple[str, CacheLife]] = set()  # at this URL
        self.writer = partial(RequestWriter, refused=refused, names_model=names_model)
        self.reader = ReplyReader
        self._client = client

    async def post(self, body: bytes, target: Target) -> httpx2.Response:
        """Send one model request and return the answer with its body unread."""
        return await self._client.post(
            self.path(target),
            cast_to=httpx2.Response,
            content=body,
            # A redirect would carry the key to another host.
            options={"headers": await self.headers(target), "follow_redirects": False},
            stream=True,
        )

    async def headers(self, target: Target) -> Mapping[str, str]:
        """Return what model requests carry besides the SDK's headers."""
        return target.headers

    def path(self, target: Target) -> str:
        """Return the path of model requests, below the base URL."""
        del target
        return "/v1/messages"

    async def models(self, vendor: Vendor) -> httpx2.Response:
        """Request the list of models."""
        return await self._client.get(
            "/v1/models",
            cast_to=httpx2.Response,
            # A redirect would carry the key to another host.
            options={"headers": vendor.headers, "follow_redirects": False},
        )

    async def close(self) -> None:
        """Close the SDK's connections."""
        await self._client.close()


def timeout() -> httpx2.Timeout:
    """Return the timeouts of a request."""
    return httpx2.Timeout(SILENCE_S, connect=CONNECT_S)


def http_client(destination: Destination) -> httpx2.AsyncClient:
    """Return a client with our limits. The SDK's own would use the environment's proxies even with `trust_env=False`."""
    return bounded(
        anthropic.DefaultAsyncHttpxClient(base_url=destination.base_url, verify=tls_context())
        if destination.use_proxy
        else httpx2.AsyncClient(base_url=destination.base_url, verify=tls_context(), trust_env=False),
        destination.key_header,
    )
