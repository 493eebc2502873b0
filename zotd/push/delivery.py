"""Requests to push services. Imported when the first message is sent, because `aiohttp` takes 10 MB."""

import asyncio
import logging
from types import TracebackType
from typing import Self

import aiohttp

log = logging.getLogger(__name__)

POST_S = 10.0
"""Timeout of one request."""

PAUSES_S = (2.0, 10.0)
"""Pauses before the second and the third request for a message, the last one, if the push service names none."""

MAX_PAUSE_S = 60.0
"""Longest pause that is waited for if the push service names one."""

RETRIED = frozenset({0, 429, 500, 502, 503, 504})
"""Outcomes after which the same request may succeed; 0: there was no response."""


class HttpPoster:
    """Sends requests while it is entered; satisfies `zotd.push.service.Poster`."""

    def __init__(self) -> None:
        self._http = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=POST_S))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.close()

    async def post(self, url: str, headers: dict[str, str], body: bytes) -> int:
        """Return the status of the last of up to three requests, or 0 if there was no response."""
        for pause_s in PAUSES_S:
            status, asked_s = await self._post(url, headers, body)
            if status not in RETRIED:
                return status
            await asyncio.sleep(min(pause_s if asked_s is None else asked_s, MAX_PAUSE_S))
        return (await self._post(url, headers, body))[0]

    async def _post(self, url: str, headers: dict[str, str], body: bytes) -> tuple[int, float | None]:
        """Return the status, or 0 if there was no response, and the pause that the push service asks for."""
        try:
            async with self._http.post(url, headers=headers, data=body, allow_redirects=False) as response:
                asked = response.headers.get("Retry-After", "")
                return response.status, float(asked) if asked.isascii() and asked.isdecimal() else None
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            log.debug("a push service cannot be reached: %s", type(error).__name__)
            return 0, None
