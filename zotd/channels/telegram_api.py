"""Telegram's Bot API, as far as the channel uses it (https://core.telegram.org/bots/api).

The token is part of every URL: no error that leaves this module shows one, and nothing is logged.
"""

import asyncio
import logging
from collections.abc import Mapping

import httpx
import msgspec
from msgspec import Struct, field

CALL_S = 30.0
"""For one request, beyond what Telegram is asked to wait."""

MAX_FLOOD_S = 900
"""Longest `retry_after` that is waited for. A bot is told seconds, and after hours of abuse hours."""

FLOOD_TRIES = 5

IMAGE_BYTES = 3_000_000
"""Largest image: as base64, with its message, it fits into a frame of 4 MiB. Telegram's own photos are far below."""

ANSWER_BYTES = 8 * 1024 * 1024
"""Of an answer; a hundred updates, the most that one holds, have at most some 50 KB each."""

CHUNK_BYTES = 64 * 1024
"""Read at once, also of a body that is compressed."""

logging.getLogger("httpx").setLevel(logging.WARNING)  # at `info` it logs every URL


class TelegramError(Exception):
    """Telegram refused something, or could not be reached; the message is for people and holds no token."""

    def __init__(self, sentence: str, code: int = 0) -> None:
        """`code`: the API's; 0: there was no answer."""
        super().__init__(sentence)
        self.code = code


# --- what the API says (only what is used of it) --------------------------------------------------------------


class Hints(Struct, frozen=True):
    """`ResponseParameters`."""

    retry_after: float | None = None


class ApiResponse(Struct, frozen=True):
    """Every response."""

    ok: bool
    result: msgspec.Raw = msgspec.Raw(b"null")
    error_code: int = 0
    description: str = ""
    parameters: Hints = Hints()


class User(Struct, frozen=True):
    """Somebody, or a bot."""

    id: int
    is_bot: bool = False
    username: str = ""


class Chat(Struct, frozen=True):
    """Where a message was written; `type` is `private`, `group` or `supergroup`."""

    id: int
    type: str = "private"


class File(Struct, frozen=True):
    """A `PhotoSize`, a `Document` or a `File`."""

    file_id: str
    file_size: int = 0
    width: int = 0
    mime_type: str = ""
    file_path: str = ""


class RepliedMessage(Struct, frozen=True):
    """The message that another one answers."""

    author: User | None = field(default=None, name="from")


class Written(Struct, frozen=True):
    """A `Message`."""

    message_id: int
    chat: Chat
    author: User | None = field(default=None, name="from")
    text: str = ""
    caption: str = ""
    photo: list[File] = []
    document: File | None = None
    message_thread_id: int | None = None
    is_topic_message: bool = False
    reply_to_message: RepliedMessage | None = None


class Pressed(Struct, frozen=True):
    """A `CallbackQuery`: somebody pressed a button of ours; `data` is what we gave the button."""

    id: str
    author: User = field(name="from")
    data: str = ""
    message: Written | None = None


class Update(Struct, frozen=True):
    """An `Update`, as far as its number goes."""

    update_id: int
    message: msgspec.Raw = msgspec.Raw()
    callback_query: msgspec.Raw = msgspec.Raw()


class Api:
    """The Bot API over HTTP."""

    def __init__(self, token: str, base_url: str) -> None:
        self._token = token
        self._base_url = base_url.rstrip("/")
        self._client = httpx.AsyncClient(timeout=CALL_S)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def call(
        self,
        method: str,
        fields: Mapping[str, object] | None = None,
        *,
        within_s: float = CALL_S,
        is_patient: bool = True,
    ) -> msgspec.Raw:
        """The `result` of a method, as JSON. Waits as long as Telegram says when it was called too often.

        `is_patient`: False for what is not worth that.

        Raises:
            TelegramError: it was refused, or Telegram cannot be reached.
        """
        for _ in range(FLOOD_TRIES):
            answer = await self._ask(method, fields or {}, within_s)
            if answer.ok:
                return answer.result
            wait_s = answer.parameters.retry_after
            if wait_s is None or wait_s > MAX_FLOOD_S or not is_patient:
                break
            await asyncio.sleep(wait_s)
        else:
            raise TelegramError(f"Telegram takes no {method} at the moment: too many requests", 429)
        raise TelegramError(self._hidden(_explained(method, answer)), answer.error_code)

    async def download(self, file_id: str) -> bytes:
        """The bytes of a file, at most `IMAGE_BYTES`.

        Raises:
            TelegramError: there is no such file, it is too large, or Telegram cannot be reached.
        """
        file = msgspec.json.decode(await self.call("getFile", {"file_id": file_id}), type=File)
        url = f"{self._base_url}/file/bot{self._token}/{file.file_path}"
        try:
            async with self._client.stream("GET", url) as response:
                return await _body(response)
        except httpx.HTTPError as error:
            raise self._unreachable("a file", error) from None  # its own text and its request hold the URL

    async def _ask(self, method: str, fields: Mapping[str, object], within_s: float) -> ApiResponse:
        url = f"{self._base_url}/bot{self._token}/{method}"
        try:
            async with self._client.stream("POST", url, json=fields, timeout=within_s) as response:
                body = await _read(response, ANSWER_BYTES)
        except httpx.HTTPError as error:
            raise self._unreachable(method, error) from None
        if body is None:
            raise TelegramError(f"Telegram answered {method} with more than {ANSWER_BYTES:,} bytes")
        try:
            return msgspec.json.decode(body, type=ApiResponse)
        except msgspec.MsgspecError:
            raise TelegramError(f"Telegram answered {method} with status {response.status_code} and no JSON") from None

    def _unreachable(self, what: str, error: httpx.HTTPError) -> TelegramError:
        reason = self._hidden(str(error)) or type(error).__name__
        return TelegramError(f"Telegram cannot be reached ({what}): {reason}")

    def _hidden(self, text: str) -> str:
        return text.replace(self._token, "[hidden]")


async def _body(response: httpx.Response) -> bytes:
    if response.status_code != httpx.codes.OK:
        raise TelegramError(f"a file was answered with status {response.status_code}", response.status_code)
    data = await _read(response, IMAGE_BYTES)
    if data is None:
        raise TelegramError("a file is longer than Telegram said", httpx.codes.REQUEST_ENTITY_TOO_LARGE)
    return data


async def _read(response: httpx.Response, limit: int) -> bytes | None:
    """The body; None: it has more than `limit` bytes, and is not read further."""
    data = bytearray()
    async for chunk in response.aiter_bytes(CHUNK_BYTES):
        data += chunk
        if len(data) > limit:
            return None
    return bytes(data)


def _explained(method: str, answer: ApiResponse) -> str:
    said = answer.description
    if answer.error_code == httpx.codes.CONFLICT and "webhook" in said:
        return "this bot's messages go to a webhook: remove that (deleteWebhook), or use another bot"
    if answer.error_code == httpx.codes.CONFLICT:
        return "another program receives this bot's messages: stop that one, or use another bot"
    if answer.error_code in {httpx.codes.UNAUTHORIZED, httpx.codes.NOT_FOUND} and method == "getMe":
        return "Telegram does not know this bot token; @BotFather shows the right one"
    return f"Telegram refused {method}: {said or answer.error_code}"
