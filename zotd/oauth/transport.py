"""Sends requests to authorization servers. Imports an HTTP library that costs a tenth of a second: load it in a thread."""

import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2

from zotd.oauth.protocol import HttpAnswer, HttpRequest, OAuthError, Problem

CONNECT_S = 10.0
"""Longest wait for a connection."""

REQUEST_S = 20.0
"""Longest wait for the next bytes, and for a whole answer once it has begun: other processes of this home may wait for the
result, and a stop of the daemon does."""

ANSWER_BYTES = 256 * 1024
"""Longest answer; tokens with claims have a few thousand bytes."""


def send(request: HttpRequest) -> HttpAnswer:
    """Send a request and return its answer. Blocks, at most `CONNECT_S` and twice `REQUEST_S`; redirects are not followed.

    Raises:
        OAuthError: `UNREACHABLE`: there was no answer, or it is too long.
    """
    host = urlsplit(request.url).hostname
    try:
        with (
            httpx2.Client(
                timeout=httpx2.Timeout(REQUEST_S, connect=CONNECT_S),
                # No proxy can reach this machine for us, whatever the environment says.
                trust_env=host not in {"localhost", "127.0.0.1", "::1"},
                follow_redirects=False,  # would carry tokens to another host
            ) as client,
            client.stream(
                request.method,
                request.url,
                headers={**request.headers, "Accept-Encoding": "identity"},
                content=request.body or None,
            ) as answer,
        ):
            return HttpAnswer(answer.status_code, _bounded(answer.iter_raw(), str(host)))
    except httpx2.TimeoutException as error:
        raise OAuthError(Problem.UNREACHABLE, f"{host} did not answer within {REQUEST_S:.0f} s") from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise OAuthError(Problem.UNREACHABLE, f"{host} cannot be reached: {error}") from error


def _bounded(pieces: Iterator[bytes], host: str) -> bytes:
    ends_at = time.monotonic() + REQUEST_S
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > ANSWER_BYTES:
            raise OAuthError(Problem.UNREACHABLE, f"{host} sent more than {ANSWER_BYTES >> 10} KiB")
        if time.monotonic() > ends_at:
            raise OAuthError(Problem.UNREACHABLE, f"{host} did not answer within {REQUEST_S:.0f} s")
    return bytes(body)
