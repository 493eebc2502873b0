"""One exchange with a model server over HTTP: a bounded client, a model request, a look at a page of the server.

Imports the HTTP library of the SDKs: only the API modules import this one.
"""

from contextlib import aclosing

import httpx2

from zotd.providers.shared.failures import answered, silent, unreachable
from zotd.providers.shared.http import bound, renamer
from zotd.providers.shared.vendors import SDK_KEY_HEADER, KeyHeader, Target


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
