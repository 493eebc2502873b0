"""Telegram's Bot API on loopback, as far as the channel uses it: real HTTP, and a person whose part a test plays.

    async with TelegramServer() as telegram:            # TELEGRAM_API_URL=telegram.url, TELEGRAM_BOT_TOKEN=TOKEN
        await telegram.write("hello")
        await telegram.said(1)                          -> [{"chat_id": 7, "text": "..."}]

It forgets a message when a request names a higher offset, as the real one does, and not before.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from types import TracebackType
from typing import Self, cast

from aiohttp import web

Json = dict[str, object]

TOKEN = "7000000:scripted-bot-token"  # noqa: S105  (of no bot)
USER = 7
"""The person who writes."""
BOT = Json(id=7000000, is_bot=True, first_name="Scripted", username="scripted_bot")

TAGS = frozenset({"a", "b", "blockquote", "code", "del", "em", "i", "ins", "pre", "s", "strong", "u"})
"""That `parse_mode` HTML takes, as far as the channel may use them."""

WAIT_S = 30.0
"""How long a test waits for the bot."""

CLOSE_S = 1.0
"""How long open requests have to notice that the server closes."""


@dataclass(frozen=True, slots=True)
class FailedMethod:
    """A method that fails once."""

    method: str
    code: int
    description: str
    retry_after: float | None = None


class TelegramServer:
    """Serves while it is entered."""

    def __init__(self) -> None:
        self.url = ""
        self.sent: list[Json] = []
        """The parameters of each `sendMessage` that was accepted."""
        self.requests: list[tuple[str, Json]] = []
        """Each method with its parameters, refused ones included."""
        self.files: dict[str, bytes] = {}
        """By file id."""
        self.refusals: deque[FailedMethod] = deque()
        """What fails next, each once, when its method is called."""
        self.pads = False
        """True: an answer begins with blanks and has no end."""
        self.is_left = asyncio.Event()
        """A client has left in the middle of an answer without end."""
        self.takes_messages = True
        """False: every `sendMessage` fails with an internal error."""
        self.offset = 0
        """The highest one that a request has named: what is below is forgotten."""
        self.changed = asyncio.Condition()
        """Notified at each request and each message."""
        self._updates: list[Json] = []
        self._numbers = 0
        self._runner: web.AppRunner | None = None
        self._closing = False

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/bot{token}/{method}", self._serve)
        app.router.add_get("/file/bot{token}/{file_id}", self._serve_file)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=CLOSE_S)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing = True
        await self._notify()
        assert self._runner is not None
        await self._runner.cleanup()

    async def write(self, text: str = "", *, user: int = USER, group: int | None = None, **fields: object) -> int:
        """Somebody writes to the bot, in private or in a `group`; `fields` go into the message. Gives its number."""
        self._numbers += 1
        chat = Json(id=user, type="private") if group is None else Json(id=group, type="supergroup")
        author = Json(id=user, is_bot=False, first_name="Ada")
        message = {"message_id": self._numbers, "chat": chat, "from": author, "text": text, **fields}
        self._updates.append({"update_id": 1000 + self._numbers, "message": message})
        await self._notify()
        return self._numbers

    async def press(self, label: str, sent: Json, *, user: int = USER) -> None:
        """Somebody presses a button below a message of the bot, which is one of `sent`."""
        markup = cast("dict[str, list[list[dict[str, str]]]]", sent["reply_markup"])
        (data,) = [one["callback_data"] for row in markup["inline_keyboard"] for one in row if one["text"] == label]
        self._numbers += 1
        chat = Json(id=sent["chat_id"], type="private" if cast("int", sent["chat_id"]) > 0 else "supergroup")
        query = {
            "id": str(self._numbers),
            "from": Json(id=user, is_bot=False, first_name="Ada"),
            "message": {"message_id": self.sent.index(sent) + 1, "chat": chat, "from": BOT, "text": sent["text"]},
            "data": data,
        }
        self._updates.append({"update_id": 1000 + self._numbers, "callback_query": query})
        await self._notify()

    async def said(self, count: int) -> list[Json]:
        """Wait until the bot has sent so many messages; all of them."""
        await self._until(lambda: len(self.sent) >= count)
        return list(self.sent)

    async def confirmed(self, number: int) -> None:
        """Wait until a request has said that the message with this number is not needed any more."""
        await self._until(lambda: self.offset > 1000 + number)

    async def asked(self, method: str, count: int = 1) -> None:
        """Wait until a method was called so often."""
        await self._until(lambda: sum(name == method for name, _ in self.requests) >= count)

    async def _until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S), self.changed:
            await self.changed.wait_for(holds)

    # --- serving --------------------------------------------------------------------------------------------------

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        method = request.match_info["method"]
        if request.match_info["token"] != TOKEN:
            return _refused(FailedMethod(method, 401, "Unauthorized"))
        fields = cast("Json", json.loads(await request.read()))
        self.requests.append((method, fields))
        if self.pads:
            return await self._pad(request)
        refusal = next((one for one in self.refusals if one.method == method), None)
        if refusal is None and method == "sendMessage" and not self.takes_messages:
            refusal = FailedMethod(method, 500, "Internal Server Error")
        elif refusal is not None:
            self.refusals.remove(refusal)
        if refusal is None and fields.get("parse_mode") == "HTML" and not _is_html(str(fields["text"])):
            refusal = FailedMethod(method, 400, "Bad Request: can't parse entities")
        if refusal is not None:
            await self._notify()
            return _refused(refusal)
        result = await self._result(method, fields)
        await self._notify()
        return web.json_response({"ok": True, "result": result})

    async def _pad(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b" " * 65536)
        finally:
            self.is_left.set()

    async def _result(self, method: str, fields: Json) -> object:
        match method:
            case "getMe":
                return BOT
            case "getUpdates":
                return await self._poll(cast("int", fields.get("offset", 0)))
            case "getFile":
                return {"file_id": fields["file_id"], "file_path": fields["file_id"]}
            case "editMessageText" | "deleteMessage":
                return True
            case "sendChatAction" | "answerCallbackQuery" | "editMessageReplyMarkup":
                return True
            case "sendMessage":
                self.sent.append(fields)
                return {"message_id": len(self.sent), "chat": {"id": fields["chat_id"]}}
            case _:
                raise web.HTTPNotFound

    async def _poll(self, offset: int) -> list[Json]:
        self.offset = max(self.offset, offset)
        self._updates = [one for one in self._updates if cast("int", one["update_id"]) >= offset]
        await self._notify()
        async with self.changed:
            await self.changed.wait_for(lambda: self._updates or self._closing)
        return self._updates

    async def _serve_file(self, request: web.Request) -> web.Response:
        data = self.files.get(request.match_info["file_id"])
        if data is None or request.match_info["token"] != TOKEN:
            raise web.HTTPNotFound
        return web.Response(body=data)

    async def _notify(self) -> None:
        async with self.changed:
            self.changed.notify_all()


class _Tags(HTMLParser):
    """What the real one says of a text: tags that it knows, each closed in its turn."""

    def __init__(self) -> None:
        super().__init__()
        self.around: list[str] = []
        self.is_good = True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.around.append(tag)
        self.is_good &= tag in TAGS and (tag == "a") == any(name == "href" for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        self.is_good &= bool(self.around) and self.around.pop() == tag


def _is_html(text: str) -> bool:
    tags = _Tags()
    tags.feed(text)
    tags.close()
    return tags.is_good and not tags.around


def _refused(refusal: FailedMethod) -> web.Response:
    hints: Mapping[str, object] = {} if refusal.retry_after is None else {"retry_after": refusal.retry_after}
    answer = {"ok": False, "error_code": refusal.code, "description": refusal.description, "parameters": hints}
    return web.json_response(answer, status=refusal.code)
