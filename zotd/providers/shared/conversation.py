"""Conversations with model servers over HTTP: the part that is the same for all vendors, with an SDK and without.

A vendor's SDK brings authentication, headers and connections. It makes the first request to a URL; the following ones
repeat its headers, because the SDK computes them anew each time, which takes as long as all of our own work for a step. It
gets the request in bytes and hands the answer over unread, because its own types cost many times as much. The SDKs are
generated from one template, so their exceptions differ only in the module that they come from; an API module lists them in
`SdkErrors`.

Imports the HTTP library of the SDKs: only the API modules import this one.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import httpx2

from zotd.core.ports import ModelRequest
from zotd.core.reply import Part
from zotd.core.retry import Failure, ModelError
from zotd.providers.shared import initiator
from zotd.providers.shared.failures import answered, silent, unreachable
from zotd.providers.shared.http import bound, renamer
from zotd.providers.shared.streaming import PartReader, parts
from zotd.providers.shared.vendors import SDK_KEY_HEADER, KeyHeader, Target, Vendor


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


def bounded(client: httpx2.AsyncClient, key_header: KeyHeader = SDK_KEY_HEADER) -> httpx2.AsyncClient:
    """The same client, with bounds on what its answers may hold; requests carry the key in `key_header`."""
    client.headers["Accept-Encoding"] = "identity"
    client.event_hooks = {"response": [_received], "request": [renamer(key_header)] if key_header.name else []}
    return client


async def send(http: httpx2.AsyncClient, request: httpx2.Request, target: Target) -> httpx2.Response:
    """Send a model request and return the answer, whose status is 200 and whose body is unread; the caller closes it.

    Raises:
        ModelError: there is no answer, or one with another status.
    """
    try:
        # A redirect would carry the key to another host.
        answer = await http.send(request, stream=True, follow_redirects=False)
    except httpx2.TimeoutException as error:
        raise silent(target, was_sent=not isinstance(error, httpx2.ConnectTimeout)) from error
    except httpx2.HTTPError as error:
        raise unreachable(target, error, was_sent=not isinstance(error, httpx2.ConnectError)) from error
    if not answer.is_success:
        content = await answer.aread()
        raise answered(target, answer.status_code, answer.headers, content)
    return answer


async def beginning(http: httpx2.AsyncClient, url: str, limit: int, question: bytes) -> bytes:
    """Return at most `limit` bytes of what is at a URL; empty if there is nothing. `question` is sent by POST."""
    method = "POST" if question else "GET"
    try:
        async with http.stream(method, url, content=question or None, follow_redirects=False) as answer:
            return await _read(answer, limit) if answer.is_success else b""
    except httpx2.HTTPError:
        return b""


async def _read(answer: httpx2.Response, limit: int) -> bytes:
    found = bytearray()
    async with aclosing(answer.aiter_bytes()) as pieces:
        async for piece in pieces:
            found += piece
            if len(found) >= limit:
                break
    return bytes(found[:limit])


async def _received(answer: httpx2.Response) -> None:
    if not answer.is_success or "content-encoding" in answer.headers:
        bound(answer)


class StatusError(Exception):
    """The shape of an SDK's exception for an HTTP status that is an error. No SDK's class inherits from it."""

    status_code: int
    response: httpx2.Response


class SdkErrors(NamedTuple):
    """The exceptions of one SDK, as far as they mean different things."""

    status: type[StatusError]
    timeout: type[Exception]
    connection: type[Exception]
    base: type[Exception]


class Sdk(Protocol):
    """One vendor SDK, bound to a URL and a key."""

    name: str
    """Name of the SDK in messages: `OpenAI's SDK`."""
    errors: SdkErrors
    http: httpx2.AsyncClient
    """Its HTTP client, which it closes."""
    repeats: bool
    """Whether later requests may have the URL and the headers of the first; not if those depend on body or time."""

    def writer(self, target: Target) -> RequestBody:
        """A writer for the requests of one run."""
        ...

    def reader(self, target: Target) -> PartReader:
        """A reader for one reply."""
        ...

    async def post(self, body: bytes, target: Target) -> httpx2.Response:
        """Send one model request and return the answer with its body unread."""
        ...

    async def models(self, vendor: Vendor) -> httpx2.Response:
        """Request the list of models, which costs nothing."""
        ...

    async def close(self) -> None:
        """Close the SDK's connections."""
        ...


@dataclass(frozen=True, slots=True)
class RequestHead:
    """What the model requests to one URL share: everything but the body."""

    url: httpx2.URL
    headers: httpx2.Headers
    extensions: dict[str, object]
    """Its timeouts."""

    @classmethod
    def of(cls, request: httpx2.Request) -> Self:
        """Return the head of a request that an SDK has made."""
        headers = httpx2.Headers(request.headers)
        for name in ("content-length", *initiator.NAMES):
            headers.pop(name, None)
        return cls(request.url, headers, {"timeout": request.extensions["timeout"]})

    def request(self, body: bytes, further: Mapping[str, str]) -> httpx2.Request:
        """Return another request; `further`: headers that may differ from those of the first one."""
        request = httpx2.Request("POST", self.url, headers=self.headers, content=body, extensions=self.extensions)
        request.headers.update(further)
        return request


class SdkClient:
    """Satisfies `shared.VendorClient` with a vendor's SDK."""

    def __init__(self, sdk: Sdk) -> None:
        """Owns the SDK and closes it."""
        self._sdk = sdk
        self._heads: dict[str, RequestHead] = {}
        """By the vendor, which may have headers of its own."""

    def open(self, target: Target) -> HttpConversation:
        """Return a conversation for one run."""
        return HttpConversation(SdkPost(self._sdk, target, self._heads), target)

    async def status(self, vendor: Vendor) -> int:
        """Return the HTTP status of a request that costs nothing.

        Raises:
            ModelError: the vendor sent no answer.
        """
        errors = self._sdk.errors
        try:
            answer = await self._sdk.models(vendor)
        except errors.status as error:
            return error.status_code
        except errors.base as error:
            raise ModelError(Failure.UNREACHABLE, str(error.__cause__ or error)) from error
        return answer.status_code

    async def look(self, url: str, limit: int, question: bytes = b"") -> bytes:
        """Return the beginning of what is at a URL, asked for without a key; see `shared.VendorClient`."""
        return await beginning(self._sdk.http, url, limit, question)

    async def close(self) -> None:
        """Close its connections; conversations that still stream fail."""
        await self._sdk.close()


class SdkPost:
    """Makes the requests of one run with a vendor's SDK (`ModelPost`)."""

    def __init__(self, sdk: Sdk, target: Target, heads: dict[str, RequestHead]) -> None:
        """`heads`: those of all runs with one client, by vendor; a run adds its own."""
        self._sdk = sdk
        self._target = target
        self._heads = heads

    def writer(self) -> RequestBody:
        """See `ModelPost`."""
        return self._sdk.writer(self._target)

    def reader(self) -> PartReader:
        """See `ModelPost`."""
        return self._sdk.reader(self._target)

    async def post(self, body: bytes, request: ModelRequest) -> httpx2.Response:
        """See `ModelPost`."""
        further = initiator.initiator_headers(request) if self._target.vendor.initiator else {}
        head = self._heads.get(self._target.vendor.name)
        if head is not None:
            access = self._target.access
            again = head.request(body, {**(access.headers if access else {}), **further})
            return await send(self._sdk.http, again, self._target)
        answer = await self._first(body, further)
        if self._sdk.repeats:
            self._heads[self._target.vendor.name] = RequestHead.of(answer.request)
        return answer

    async def _first(self, body: bytes, further: Mapping[str, str]) -> httpx2.Response:
        errors = self._sdk.errors
        try:
            return await self._sdk.post(body, self._target.with_headers(further))
        except errors.status as error:
            raise answered(self._target, error.status_code, error.response.headers, error.response.content) from error
        except errors.timeout as error:  # a subclass of `errors.connection`, so it comes first
            was_sent = not isinstance(error.__cause__, httpx2.ConnectTimeout)
            raise silent(self._target, was_sent=was_sent) from error
        except errors.connection as error:
            was_sent = not isinstance(error.__cause__, httpx2.ConnectError)
            raise unreachable(self._target, error, was_sent=was_sent) from error
        except errors.base as error:
            raise ModelError(Failure.REFUSED, f"{self._sdk.name} refused the request: {error}") from error
