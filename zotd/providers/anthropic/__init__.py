"""The Messages API through Anthropic's SDK, which brings authentication, headers and connections.

The SDK gets the request in bytes and hands the answer over unread: its own types cost twice (request, 201 messages)
to 13 times (each delta) as much. Imported at first use only: 1.4 s of CPU and 80 MB.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import anthropic
import httpx2

from zotd.core.ports import ModelRequest
from zotd.core.reply import Part
from zotd.core.retry import Failure, ModelError
from zotd.providers.anthropic.reply import ReplyReader
from zotd.providers.anthropic.request import RequestWriter
from zotd.providers.shared import CONNECT_S, SILENCE_S, Target, answered, parts, silent, unreachable
from zotd.providers.shared.http import bounded


class Client:
    """Anthropic's client for one URL and key; `close` it when no conversation streams any more."""

    def __init__(self, *, base_url: str, api_key: str, use_proxy: bool) -> None:
        """`use_proxy`: as the environment says (`HTTPS_PROXY`, `NO_PROXY`, ...)."""
        self._sdk = anthropic.AsyncAnthropic(
            base_url=base_url,
            api_key=api_key,
            max_retries=0,  # the session repeats requests itself, and shows that it does
            timeout=httpx2.Timeout(SILENCE_S, connect=CONNECT_S),
            # The SDK's own client would use the environment's proxies even with `trust_env=False`.
            http_client=bounded(
                anthropic.DefaultAsyncHttpxClient(base_url=base_url)
                if use_proxy
                else httpx2.AsyncClient(base_url=base_url, trust_env=False)
            ),
        )

    def open(self, target: Target) -> "Conversation":
        """A conversation for one run."""
        return Conversation(self._sdk, target)

    async def status(self) -> int:
        """As `shared.Client` says."""
        try:
            # A redirect would carry the key to another host.
            answer = await self._sdk.get("/v1/models", cast_to=httpx2.Response, options={"follow_redirects": False})
        except anthropic.APIStatusError as error:
            return error.status_code
        except anthropic.AnthropicError as error:
            raise ModelError(Failure.UNREACHABLE, str(error.__cause__ or error)) from error
        return answer.status_code

    async def close(self) -> None:
        """Close its connections."""
        await self._sdk.close()


class Conversation:
    """The model calls of one run."""

    def __init__(self, sdk: anthropic.AsyncAnthropic, target: Target) -> None:
        self._sdk = sdk
        self._target = target
        self._writer = RequestWriter(target)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[Part], None]:
        """As `core.ports.Model.stream`."""
        answer = await self._post(self._writer.body(request))
        async with aclosing(parts(answer, ReplyReader(self._target), self._target, httpx2.HTTPError)) as received:
            async for chunk in received:
                yield chunk

    async def _post(self, body: bytes) -> httpx2.Response:
        try:
            return await self._sdk.post(
                "/v1/messages",
                cast_to=httpx2.Response,
                content=body,
                # A redirect would carry the key to another host.
                options={"headers": self._target.vendor.headers, "follow_redirects": False},
                stream=True,
            )
        except anthropic.APIStatusError as error:
            raise answered(self._target, error.status_code, error.response.headers, error.response.content) from error
        except anthropic.APITimeoutError as error:
            was_sent = not isinstance(error.__cause__, httpx2.ConnectTimeout)
            raise silent(self._target, was_sent=was_sent) from error
        except anthropic.APIConnectionError as error:
            was_sent = not isinstance(error.__cause__, httpx2.ConnectError)
            raise unreachable(self._target, error, was_sent=was_sent) from error
        except anthropic.AnthropicError as error:
            raise ModelError(Failure.REFUSED, f"Anthropic's SDK refused the request: {error}") from error
