"""The part of Telegram's Bot API that the channel uses (https://core.telegram.org/bots/api).

The token is part of every URL, so no error of this module contains a URL, and nothing is logged.
"""

import asyncio
import logging
from collections.abc import Mapping

import httpx
import msgspec
from msgspec import Struct, field

CALL_S = 30.0
"""Time limit of a request, in addition to the time that Telegram is asked to wait."""

MAX_FLOOD_S = 900
"""Longest `retry_after` to wait for. It is usually seconds, but hours after long abuse."""

FLOOD_TRIES = 5

IMAGE_BYTES = 3_000_000
"""Largest image: as base64 with its message, it fits into a frame of 4 MiB. Telegram's own photos are much smaller."""

ANSWER_BYTES = 8 * 1024 * 1024
"""Limit of a response, which has at most a hundred updates of about 50 KB."""

CHUNK_BYTES = 64 * 1024
"""How much is read at once, after decompression."""

logging.getLogger("httpx").setLevel(logging.WARNING)  # at `info` it logs every URL, and with it the token


class TelegramError(Exception):
    """Telegram refused a request or could not be reached. The message is for people and contains no token."""

    def __init__(self, sentence: str, code: int = 0, retry_after_s: float | None = None) -> None:
        """Create an error; `code` is that of the API, or 0 without a response.

        `retry_after_s` is the time for which Telegram accepts no such request; None if it has named none.
        """
        super().__init__(sentence)
        self.code = code
        self.retry_after_s = retry_after_s


# --- what the API says (only what is used of it) --------------------------------------------------------------


class Hints(Struct, frozen=True):
    """The API type `ResponseParameters`."""

    retry_after: float | None = None


class ApiResponse(Struct, frozen=True):
    """The envelope of every response."""

    ok: bool
    result: msgspec.Raw = msgspec.Raw(b"null")
    error_code: int = 0
    description: str = ""
    parameters: Hints = Hints()


class User(Struct, frozen=True):
    """A person or a bot."""

    id: int
    is_bot: bool = False
    username: str = ""


class Chat(Struct, frozen=True):
    """The chat of a message; `type` is `private`, `group` or `supergroup`."""

    id: int
    type: str = "private"


class File(Struct, frozen=True):
    """The API types `PhotoSize`, `Document` and `File`."""

    file_id: str
    file_size: int = 0
    width: int = 0
    mime_type: str = ""
    file_path: str = ""


class InlineButton(Struct, frozen=True):
    """The API type `InlineKeyboardButton`."""

    callback_data: str = ""


class InlineKeyboard(Struct, frozen=True):
    """The API type `InlineKeyboardMarkup`."""

    inline_keyboard: list[list[InlineButton]] = []


class RepliedMessage(Struct, frozen=True):
    """The message that another one replies to."""

    author: User | None = field(default=None, name="from")
    reply_markup: InlineKeyboard | None = None


class Written(Struct, frozen=True):
    """The API type `Message`."""

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
    """The API type `CallbackQuery`: a person pressed a button; `data` is the value given to the button."""

    id: str
    author: User = field(name="from")
    data: str = ""
    message: Written | None = None


class Update(Struct, frozen=True):
    """The API type `Update`. Its contents are decoded later, so that one unreadable update does not block the others."""

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
        """Call a method and return its `result` as JSON. After too many requests, waits as long as Telegram demands.

        `is_patient` False: raise an error instead of waiting.

        Raises:
            TelegramError: the request was refused, or Telegram cannot be reached.
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
            raise TelegramError(f"Telegram rejects {method} at the moment: too many requests", 429)
        raise TelegramError(self._hidden(_explained(method, answer)), answer.error_code, wait_s)

    async def download(self, file_id: str) -> bytes:
        """Download a file of at most `IMAGE_BYTES`.

        Raises:
            TelegramError: there is no such file, it is too large, or Telegram cannot be reached.
        """
        file = msgspec.json.decode(await self.call("getFile", {"file_id": file_id}), type=File)
        url = f"{self._base_url}/file/bot{self._token}/{file.file_path}"
        try:
            # Streamed, so that a body without an end is not read into memory.
            async with self._client.stream("GET", url) as response:
                return await _body(response)
        except httpx.HTTPError as error:
            raise self._unreachable("a file", error) from None  # its text and its request contain the URL

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
    """Read the body; return None if it has more than `limit` bytes."""
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
