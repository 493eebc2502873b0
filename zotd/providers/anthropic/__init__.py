"""The Messages API through Anthropic's SDK.

The SDK's own types cost twice (request, 201 messages) to 13 times (each delta) as much as ours. Imported at first use
only: 1.4 s of CPU and 80 MB.
"""

from typing import cast

import anthropic
import httpx2

from zotd.providers.anthropic.reply import ReplyReader
from zotd.providers.anthropic.request import RequestWriter
from zotd.providers.shared import CONNECT_S, SILENCE_S, Destination, Target, Vendor
from zotd.providers.shared.http import bounded, tls_context
from zotd.providers.shared.sdk_client import SdkClient, SdkErrors, StatusError


class AnthropicSdk:
    """Anthropic's SDK for one URL and key."""

    name = "Anthropic's SDK"
    errors = SdkErrors(
        status=cast("type[StatusError]", anthropic.APIStatusError),
        timeout=anthropic.APITimeoutError,
        connection=anthropic.APIConnectionError,
        base=anthropic.AnthropicError,
    )

    def __init__(self, destination: Destination) -> None:
        """Connects when the first request is made."""
        base_url = destination.base_url
        # The SDK's own client would use the environment's proxies even with `trust_env=False`.
        self.http = bounded(
            anthropic.DefaultAsyncHttpxClient(base_url=base_url, verify=tls_context())
            if destination.use_proxy
            else httpx2.AsyncClient(base_url=base_url, verify=tls_context(), trust_env=False),
            destination.key_header,
        )
        self._client = anthropic.AsyncAnthropic(
            base_url=base_url,
            api_key=destination.api_key,
            max_retries=0,  # the session repeats requests itself, and shows that it does
            timeout=httpx2.Timeout(SILENCE_S, connect=CONNECT_S),
            http_client=self.http,
        )

    def writer(self, target: Target) -> RequestWriter:
        """Return a writer for the requests of one run."""
        return RequestWriter(target)

    def reader(self, target: Target) -> ReplyReader:
        """Return a reader for one reply."""
        return ReplyReader(target)

    async def post(self, body: bytes, target: Target) -> httpx2.Response:
        """Send one model request and return the answer with its body unread."""
        return await self._client.post(
            "/v1/messages",
            cast_to=httpx2.Response,
            content=body,
            # A redirect would carry the key to another host.
            options={"headers": target.headers, "follow_redirects": False},
            stream=True,
        )

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


def make_client(destination: Destination) -> SdkClient:
    """Return a client for one URL and key, with its own connections; the caller closes it."""
    return SdkClient(AnthropicSdk(destination))
