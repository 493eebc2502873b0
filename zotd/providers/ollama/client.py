"""Requests to one Ollama server."""

import httpx2

from zotd.core.ports import ModelRequest
from zotd.core.retry import Failure, ModelError
from zotd.providers.ollama.reply import ReplyReader
from zotd.providers.ollama.request import RequestWriter
from zotd.providers.shared import CONNECT_S, NO_KEY, SILENCE_S, Destination, Target, Vendor
from zotd.providers.shared.conversation import HttpConversation, beginning, bounded, send
from zotd.providers.shared.http import tls_context

MAX_CONNECTIONS = 1000
"""As many as the SDKs of other vendors open: sessions wait for the server's queue and not for a connection."""


class OllamaClient:
    """Satisfies `shared.VendorClient` for one URL and key; shared by runs."""

    def __init__(self, destination: Destination) -> None:
        """Connects when the first request is made."""
        self._url = destination.base_url.rstrip("/").removesuffix("/api")
        key = destination.api_key
        self._http = bounded(
            httpx2.AsyncClient(
                verify=tls_context(),
                trust_env=destination.use_proxy,
                timeout=httpx2.Timeout(SILENCE_S, connect=CONNECT_S),
                limits=httpx2.Limits(max_connections=MAX_CONNECTIONS),
                headers={} if key == NO_KEY else {"Authorization": f"Bearer {key}"},
            ),
            destination.key_header,
        )

    def open(self, target: Target) -> HttpConversation:
        """Return a conversation for one run."""
        return HttpConversation(OllamaPost(self._http, f"{self._url}/api/chat", target), target)

    async def status(self, vendor: Vendor) -> int:
        """Return the HTTP status of a request that costs nothing: the list of installed models.

        Raises:
            ModelError: the server sent no answer.
        """
        try:
            answer = await self._http.get(f"{self._url}/api/tags", headers=vendor.headers, follow_redirects=False)
        except httpx2.HTTPError as error:
            raise ModelError(Failure.UNREACHABLE, str(error) or type(error).__name__) from error
        return answer.status_code

    async def look(self, url: str, limit: int, question: bytes = b"") -> bytes:
        """Return the beginning of what is at a URL, asked for with the key; see `shared.VendorClient`."""
        return await beginning(self._http, url, limit, question)

    async def close(self) -> None:
        """Close its connections; conversations that still stream fail."""
        await self._http.aclose()


class OllamaPost:
    """Makes the requests of one run (`shared.conversation.ModelPost`)."""

    def __init__(self, http: httpx2.AsyncClient, url: str, target: Target) -> None:
        self._http = http
        self._url = url
        self._target = target

    def writer(self) -> RequestWriter:
        """See `ModelPost`."""
        return RequestWriter(self._target)

    def reader(self) -> ReplyReader:
        """See `ModelPost`."""
        return ReplyReader(self._target)

    async def post(self, body: bytes, request: ModelRequest) -> httpx2.Response:
        """See `ModelPost`."""
        del request
        headers = dict(self._target.headers)
        return await send(
            self._http, self._http.build_request("POST", self._url, content=body, headers=headers), self._target
        )
