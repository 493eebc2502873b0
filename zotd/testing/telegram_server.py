"""Telegram's Bot API on loopback, as far as the channel uses it: real HTTP, and a person whose part a test plays.

    async with TelegramServer() as telegram:            # TELEGRAM_API_URL=telegram.url, TELEGRAM_BOT_TOKEN=TOKEN
        await telegram.write("hello")
        await telegram.said(1)                          -> [{"chat_id": 7, "text": "..."}]

It forgets a message when a request names a higher offset, as the real one does, and not before. It refuses what the real
one refuses: messages that are too long, edits that change nothing, more messages in a minute than a chat may have, and
answers to a pressed button that come twice or are too long.
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

from zotd.testing.http_site import listening

Json = dict[str, object]

TOKEN = "7000000:scripted-bot-token"  # noqa: S105  (of no bot)
USER = 7
"""The person who writes."""
BOT = Json(id=7000000, is_bot=True, first_name="Scripted", username="scripted_bot")

TAGS = frozenset({"a", "b", "blockquote", "code", "del", "em", "i", "ins", "pre", "s", "strong", "u"})
"""That `parse_mode` HTML takes, as far as the channel may use them."""

TEXT_UNITS = 4096
"""Longest text of a message, in UTF-16 code units without tags."""

NOTICE_CHARS = 200
"""Longest answer to a pressed button."""

DATA_BYTES = 64
"""Longest value of a button."""

PER_MINUTE = {"private": 60, "group": 20}
"""Messages and edits that a chat may have in a minute."""

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
        self.markups: dict[int, Json] = {}
        """The buttons of each message that has some, as they are now; by its number."""
        self.notices: list[tuple[str, str]] = []
        """The answers to pressed buttons: id of the query, and the text."""
        self._texts: dict[tuple[object, object], str] = {}
        """What each message says now, by chat and number."""
        self._queries: set[str] = set()
        """Pressed buttons that were not answered yet."""
        self._times: dict[object, deque[float]] = {}
        """When each chat had messages, in the last minute."""
        self._updates: list[Json] = []
        self._numbers = 0
        self._runner: web.AppRunner | None = None
        self._closing = False

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_post("/bot{token}/{method}", self._serve)
        app.router.add_get("/file/bot{token}/{file_id}", self._serve_file)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=CLOSE_S)
        self.url = await listening(self._runner)
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

    async def reply(self, text: str, sent: Json) -> int:
        """Somebody replies to a message of the bot, which is one of `sent`. Gives the number of the reply."""
        number = self.sent.index(sent) + 1
        quoted = {"message_id": number, "from": BOT, "text": sent["text"], "reply_markup": self.markups[number]}
        return await self.write(text, reply_to_message=quoted)

    def labels(self, sent: Json) -> list[str]:
        """The labels of the buttons that a message of the bot has now."""
        return [one["text"] for one in _buttons(self.markups.get(self.sent.index(sent) + 1, {}))]

    async def noticed(self, count: int) -> list[str]:
        """Wait until so many pressed buttons were answered; the texts of all answers."""
        await self._until(lambda: len(self.notices) >= count)
        return [text for _, text in self.notices]

    async def press(self, label: str, sent: Json, *, user: int = USER, as_sent: bool = False) -> None:
        """Somebody presses a button below a message of the bot, which is one of `sent`.

        `as_sent`: it is one of those that the message was sent with, on a screen that does not show the present ones yet.
        """
        markup = cast("Json", sent["reply_markup"]) if as_sent else self.markups[self.sent.index(sent) + 1]
        (data,) = [one["callback_data"] for one in _buttons(markup) if one["text"] == label]
        self._numbers += 1
        self._queries.add(str(self._numbers))
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

    async def answered(self, words: str) -> None:
        """Wait until the bot has sent a message that ends with these words."""
        await self._until(lambda: any(str(one["text"]).endswith(words) for one in self.sent))

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
        refusal = refusal or self._broken_rule(method, fields)
        if refusal is not None:
            await self._notify()
            return _refused(refusal)
        result = await self._result(method, fields)
        await self._notify()
        return web.json_response({"ok": True, "result": result})

    def _broken_rule(self, method: str, fields: Json) -> FailedMethod | None:
        """Return how a request fails that the real server would refuse."""
        said = ""
        text = str(fields.get("text", ""))
        if method == "answerCallbackQuery":
            if fields["callback_query_id"] not in self._queries:
                said = "query is too old and response timeout expired or query ID is invalid"
            elif len(text) > NOTICE_CHARS:
                said = "MESSAGE_TOO_LONG"
        elif fields.get("parse_mode") == "HTML" and not _is_html(text):
            said = "can't parse entities"
        elif method in {"sendMessage", "editMessageText"} and _units(text, fields) > TEXT_UNITS:
            said = "message is too long"
        elif method == "editMessageText" and self._texts.get((fields["chat_id"], fields["message_id"])) == text:
            said = "message is not modified"
        elif any(len(one["callback_data"].encode()) > DATA_BYTES for one in _buttons(fields.get("reply_markup"))):
            said = "BUTTON_DATA_INVALID"
        if said:
            return FailedMethod(method, 400, f"Bad Request: {said}")
        return self._flooded(method, fields) if method in {"sendMessage", "editMessageText"} else None

    def _flooded(self, method: str, fields: Json) -> FailedMethod | None:
        chat, now = fields["chat_id"], asyncio.get_running_loop().time()
        times = self._times.setdefault(chat, deque())
        while times and now - times[0] >= 60:
            times.popleft()
        limit = PER_MINUTE["group" if isinstance(chat, int) and chat < 0 else "private"]
        if len(times) >= limit:
            wait_s = float(int(60 - (now - times[0])) + 1)
            return FailedMethod(method, 429, f"Too Many Requests: retry after {wait_s:g}", wait_s)
        times.append(now)
        return None

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
            case "editMessageText":
                self._texts[fields["chat_id"], fields["message_id"]] = str(fields["text"])
            case "deleteMessage" | "sendChatAction":
                pass
            case "answerCallbackQuery":
                self._queries.discard(str(fields["callback_query_id"]))
                self.notices.append((str(fields["callback_query_id"]), str(fields.get("text", ""))))
            case "editMessageReplyMarkup":
                self.markups[cast("int", fields["message_id"])] = cast("Json", fields.get("reply_markup", {}))
            case "sendMessage":
                self.sent.append(fields)
                self._texts[fields["chat_id"], len(self.sent)] = str(fields["text"])
                self.markups[len(self.sent)] = cast("Json", fields.get("reply_markup", {}))
                return {"message_id": len(self.sent), "chat": {"id": fields["chat_id"]}}
            case _:
                raise web.HTTPNotFound
        return True

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
        self.words: list[str] = []
        self.is_good = True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.around.append(tag)
        self.is_good &= tag in TAGS and (tag == "a") == any(name == "href" for name, _ in attrs)

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def handle_endtag(self, tag: str) -> None:
        self.is_good &= bool(self.around) and self.around.pop() == tag


def _units(text: str, fields: Json) -> int:
    """Length of a message, in UTF-16 code units without tags."""
    if fields.get("parse_mode") == "HTML":
        tags = _Tags()
        tags.feed(text)
        tags.close()
        text = "".join(tags.words)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _buttons(markup: object) -> list[dict[str, str]]:
    rows = cast("dict[str, list[list[dict[str, str]]]]", markup or {}).get("inline_keyboard", [])
    return [button for row in rows for button in row]


def _is_html(text: str) -> bool:
    tags = _Tags()
    tags.feed(text)
    tags.close()
    return tags.is_good and not tags.around


def _refused(refusal: FailedMethod) -> web.Response:
    hints: Mapping[str, object] = {} if refusal.retry_after is None else {"retry_after": refusal.retry_after}
    answer = {"ok": False, "error_code": refusal.code, "description": refusal.description, "parameters": hints}
    return web.json_response(answer, status=refusal.code)
