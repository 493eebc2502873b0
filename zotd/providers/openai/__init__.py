"""The Chat Completions API through OpenAI's SDK, which brings authentication, headers and connections.

For OpenAI and for the many who imitate it. The SDK gets the request in bytes and hands the answer over unread: its
own types cost 20 times (request, 201 messages) to 60 times (each delta) as much. Imported at first use only: 0.7 s
of CPU and 57 MB.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import httpx2
import openai

from zotd.core.ports import ModelRequest
from zotd.core.reply import Part
from zotd.core.retry import Failure, ModelError
from zotd.providers.openai.reply import ReplyReader
from zotd.providers.openai.request import RequestWriter
from zotd.providers.shared import CONNECT_S, SILENCE_S, Target, answered, parts, silent, unreachable
from zotd.providers.shared.http import bounded

_OWN_HOST = "api.openai.com"


class Client:
    """OpenAI's client for one URL and key; `close` it when no conversation streams any more."""

    def __init__(self, *, base_url: str, api_key: str, use_proxy: bool) -> None:
        """`use_proxy`: as the environment says (`HTTPS_PROXY`, `NO_PROXY`, ...)."""
        self._sdk = openai.AsyncOpenAI(
            base_url=base_url,
            api_key=api_key,
            max_retries=0,  # the session repeats requests itself, and shows that it does
            timeout=httpx2.Timeout(SILENCE_S, connect=CONNECT_S),
            http_client=bounded(
                openai.DefaultAsyncHttpxClient(base_url=base_url)
                if use_proxy
                else httpx2.AsyncClient(base_url=base_url, trust_env=False)
            ),
        )
        if self._sdk.base_url.host != _OWN_HOST:
            # The SDK takes both from the environment; they are no business of another vendor.
            self._sdk.organization = None
            self._sdk.project = None

    def open(self, target: Target) -> "Conversation":
        """A conversation for one run."""
        return Conversation(self._sdk, target)

    async def status(self) -> int:
        """As `shared.Client` says."""
        try:
            # A redirect would carry the key to another host.
            answer = await self._sdk.get("/models", cast_to=httpx2.Response, options={"follow_redirects": False})
        except openai.APIStatusError as error:
            return error.status_code
        except openai.OpenAIError as error:
            raise ModelError(Failure.UNREACHABLE, str(error.__cause__ or error)) from error
        return answer.status_code

    async def close(self) -> None:
        """Close its connections."""
        await self._sdk.close()


class Conversation:
    """The model calls of one run."""

    def __init__(self, sdk: openai.AsyncOpenAI, target: Target) -> None:
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
                "/chat/completions",
                cast_to=httpx2.Response,
                content=body,
                # A redirect would carry the key to another host.
                options={"headers": self._target.vendor.headers, "follow_redirects": False},
                stream=True,
            )
        except openai.APIStatusError as error:
            raise answered(self._target, error.status_code, error.response.headers, error.response.content) from error
        except openai.APITimeoutError as error:
            was_sent = not isinstance(error.__cause__, httpx2.ConnectTimeout)
            raise silent(self._target, was_sent=was_sent) from error
        except openai.APIConnectionError as error:
            was_sent = not isinstance(error.__cause__, httpx2.ConnectError)
            raise unreachable(self._target, error, was_sent=was_sent) from error
        except openai.OpenAIError as error:
            raise ModelError(Failure.REFUSED, f"OpenAI's SDK refused the request: {error}") from error
