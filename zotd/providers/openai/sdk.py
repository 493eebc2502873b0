"""OpenAI's SDK, for its two APIs.

The SDK's own types cost 20 times (request, 201 messages) to 60 times (each delta) as much as ours. Imported at first
use only: 0.7 s of CPU and 57 MB.
"""

from collections.abc import Callable
from typing import NamedTuple, cast

import httpx2
import openai

from zotd.providers.shared import CONNECT_S, SILENCE_S, Destination, Target, Vendor
from zotd.providers.shared.conversation import RequestBody, SdkErrors, StatusError, bounded
from zotd.providers.shared.http import tls_context
from zotd.providers.shared.streaming import PartReader

_OWN_HOST = "api.openai.com"


class OpenAiApi(NamedTuple):
    """One of the two: where it is, how a run's requests are written, how a reply is read."""

    path: str
    writer: Callable[[Target], RequestBody]
    reader: Callable[[Target], PartReader]


class OpenAiSdk:
    """OpenAI's SDK for one URL and key, and one API."""

    name = "OpenAI's SDK"
    repeats = True
    errors = SdkErrors(
        status=cast("type[StatusError]", openai.APIStatusError),
        timeout=openai.APITimeoutError,
        connection=openai.APIConnectionError,
        base=openai.OpenAIError,
    )

    def __init__(self, api: OpenAiApi, destination: Destination) -> None:
        """Connects when the first request is made."""
        self._path, self.writer, self.reader = api
        base_url = destination.base_url
        # The SDK's own client would use the environment's proxies even with `trust_env=False`.
        self.http = bounded(
            openai.DefaultAsyncHttpxClient(base_url=base_url, verify=tls_context())
            if destination.use_proxy
            else httpx2.AsyncClient(base_url=base_url, verify=tls_context(), trust_env=False),
            destination.key_header,
        )
        self._client = openai.AsyncOpenAI(
            base_url=base_url,
            api_key=destination.api_key,
            max_retries=0,  # the session repeats requests itself, and shows that it does
            timeout=httpx2.Timeout(SILENCE_S, connect=CONNECT_S),
            http_client=self.http,
        )
        if self._client.base_url.host != _OWN_HOST:
            # The SDK takes both from the environment and would send them to another vendor.
            self._client.organization = None
            self._client.project = None

    async def post(self, body: bytes, target: Target) -> httpx2.Response:
        """Send one model request and return the answer with its body unread."""
        return await self._client.post(
            self._path,
            cast_to=httpx2.Response,
            content=body,
            # A redirect would carry the key to another host.
            options={"headers": target.headers, "follow_redirects": False},
            stream=True,
        )

    async def models(self, vendor: Vendor) -> httpx2.Response:
        """Request the list of models."""
        return await self._client.get(
            "/models",
            cast_to=httpx2.Response,
            # A redirect would carry the key to another host.
            options={"headers": vendor.headers, "follow_redirects": False},
        )

    async def close(self) -> None:
        """Close the SDK's connections."""
        await self._client.close()
