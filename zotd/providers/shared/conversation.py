"""The model calls of one run over HTTP: the part that is the same however requests are made.

Imports the HTTP library of the SDKs: only the API modules import this one.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Protocol

import httpx2

from zotd.core.ports import ModelRequest
from zotd.core.reply import Part
from zotd.core.retry import ModelError
from zotd.providers.shared.streaming import PartReader, parts
from zotd.providers.shared.vendors import Target


class RequestBody(Protocol):
    """Encodes the requests of one run."""

    def body(self, request: ModelRequest) -> bytes:
        """The HTTP body of one request."""
        ...

    def adapt(self, error: ModelError, request: ModelRequest) -> bool:
        """The vendor has refused that request: leave out of the next bodies what it does not take.

        False: nothing can be left out, so it would be refused again.
        """
        ...


class ModelPost(Protocol):
    """Makes and reads the HTTP requests of one run, in one API."""

    def writer(self) -> RequestBody:
        """A writer for all requests of the run."""
        ...

    def reader(self) -> PartReader:
        """A reader for one reply."""
        ...

    async def post(self, body: bytes, request: ModelRequest) -> httpx2.Response:
        """Send `request`, encoded, and return the answer with its body unread. Raises ModelError."""
        ...


class HttpConversation:
    """Satisfies `shared.VendorConversation`."""

    def __init__(self, api: ModelPost, target: Target) -> None:
        self._api = api
        self._target = target
        self._writer = api.writer()

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[Part], None]:
        """Send one request and yield the parts of the reply; see `core.ports.Model.stream`."""
        answer = await self._ask(request)
        async with aclosing(parts(answer, self._api.reader(), self._target, httpx2.HTTPError)) as received:
            async for chunk in received:
                yield chunk

    async def _ask(self, request: ModelRequest) -> httpx2.Response:
        """Send the request, and again without what the vendor refuses, as often as that leaves something out."""
        while True:
            try:
                return await self._api.post(self._writer.body(request), request)
            except ModelError as error:
                if not self._writer.adapt(error, request):
                    raise
