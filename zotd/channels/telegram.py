"""Telegram: a bot that people write to. Like any channel it is three functions; it runs in a process of its own.

The Bot API repeats a message until a request names a higher offset (https://core.telegram.org/bots/api#getupdates).
`recv` is called again only when the daemon has the message it returned last, so that is when the offset moves: on disk
first, in the working directory, which is private to this channel.

A module file like those of users: what it keeps between its functions is global, and its helpers stand beside it.
"""

import os
import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from zotd.channels.telegram_api import CALL_S, IMAGE_BYTES, Api, Chat, Pressed, TelegramError, Update, User, Written
from zotd.channels.telegram_progress import ProgressMessages
from zotd.channels.telegram_text import Piece, pieces
from zotd.sdk import Image, Message

POLL_S = 50
"""How long Telegram keeps a request for messages open; proxies cut what is silent for a minute."""

MAX_UNFINISHED = 100
"""Long answers of which some pieces were sent and others refused."""

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

UNREADABLE = 400
"""Error code of a request that Telegram does not understand, such as one with tags that it does not know."""

FOREVER_BAD = range(400, 429)
"""Error codes of requests that will be refused again."""


async def connect() -> None:
    """A Telegram bot."""
    global _bot  # noqa: PLW0603  (a channel is a module)
    token, base_url = os.environ.get("TELEGRAM_BOT_TOKEN", ""), os.environ.get("TELEGRAM_API_URL", "")
    if not token:
        raise TelegramError(
            'there is no bot token: put {"telegram": {"api_key": "…"}} into auth.json and restart zotd, '
            "or set TELEGRAM_BOT_TOKEN for it"
        )
    if _bot is not None:
        await _bot.close()
    _bot = await Bot.open(token, base_url or "https://api.telegram.org")


async def recv() -> Message:
    """The next message for the bot."""
    assert _bot is not None
    return await _bot.next()


async def busy(message: Message) -> None:
    """Show the sender that the agent is at work; Telegram shows it for 5 s, or until a message comes."""
    assert _bot is not None
    await _bot.type(message)


async def send(message: Message) -> None:
    """Answer, in as many messages as it takes."""
    assert _bot is not None
    await _bot.answer(message)


class Bot:
    """One bot."""

    def __init__(self, api: "Api", me: User, now: Callable[[], float]) -> None:
        """Use `Bot.open`."""
        self._progress = ProgressMessages(api, now)
        self._api = api
        self._me = me
        self._place = UpdateOffset(Path(f"offset-{me.id}"))
        self._updates: deque[Update] = deque()
        self._handed_over: int | None = None
        """The update that `next` has returned last, until it is known to be safe."""
        self._sent: dict[tuple[object, ...], int] = {}
        """How many pieces of an answer have arrived, while others have not."""

    @classmethod
    async def open(cls, token: str, base_url: str, now: Callable[[], float] = time.monotonic) -> "Bot":
        """A bot whose token Telegram knows; `now`: seconds, for what may not come too often."""
        api = Api(token, base_url)
        try:
            return cls(api, msgspec.json.decode(await api.call("getMe"), type=User), now)
        except BaseException:
            await api.close()
            raise

    async def close(self) -> None:
        """Let go of the connections."""
        await self._api.close()

    async def next(self) -> Message:
        """The next message; the one before it is safe."""
        if self._handed_over is not None:
            self._pass(self._handed_over)
        while True:
            while not self._updates:
                self._updates.extend(await self._poll())
            update = self._updates[0]
            message = await self._read(update)  # when that fails, the update is still the first one
            if message is not None:
                self._handed_over = update.update_id
                return message
            self._pass(update.update_id)

    async def answer(self, message: Message) -> None:
        """Send every piece that was not sent before; a second try of the same answer goes on where the first ended."""
        about = dict(message.metadata or {})
        key = (about.get("chat_id"), about.get("message_id"), message.text)
        fields = _place_of(message)
        if "group" in about:
            fields["reply_parameters"] = {"message_id": about.get("message_id"), "allow_sending_without_reply": True}
        cut = list(pieces(message.text))
        for number, piece in enumerate(cut):
            if message.choices and number == len(cut) - 1:
                buttons = [{"text": label, "callback_data": data} for label, data in message.choices]
                fields["reply_markup"] = {"inline_keyboard": [buttons]}
            if number >= self._sent.get(key, 0):
                await self._say(fields, piece)
                self._sent[key] = number + 1
            fields.pop("reply_parameters", None)  # the first piece shows what is answered
        self._sent.pop(key, None)
        if len(self._sent) > MAX_UNFINISHED:
            del self._sent[next(iter(self._sent))]
        if not message.choices:
            with suppress(TelegramError):  # the answer is there; a sign that stays is no reason to send it again
                await self._progress.end(_key_of(message))

    async def type(self, message: Message) -> None:
        """Show "typing…" where a message came from, and after a while what the agent does."""
        await self._progress.show(_key_of(message), _place_of(message), message.text)

    async def _say(self, fields: Mapping[str, object], piece: Piece) -> None:
        """Send one message, formatted if Telegram takes it so."""
        try:
            await self._api.call("sendMessage", {**fields, "text": piece.html, "parse_mode": "HTML"})
        except TelegramError as error:
            if error.code != UNREADABLE:
                raise
            await self._api.call("sendMessage", {**fields, "text": piece.text})

    def _pass(self, update_id: int) -> None:
        """Never see this update again."""
        self._place.write(update_id + 1)
        self._handed_over = None
        if self._updates and self._updates[0].update_id == update_id:
            self._updates.popleft()

    async def _poll(self) -> list[Update]:
        offset = self._place.read()
        fields: dict[str, object] = {"timeout": POLL_S, "allowed_updates": ["message", "callback_query"]}
        if offset is not None:
            fields["offset"] = offset
        found = await self._api.call("getUpdates", fields, within_s=POLL_S + CALL_S)
        return msgspec.json.decode(found, type=list[Update])

    async def _read(self, update: Update) -> Message | None:
        """What somebody said to the bot; None: it is not meant for it."""
        if update.callback_query:
            return await self._pressed(update.callback_query)
        try:
            written = msgspec.json.decode(update.message, type=Written)
        except msgspec.MsgspecError:
            return None  # another kind of update, or one of a newer API that this module cannot read
        if written.author is None or written.author.is_bot:
            return None  # bots that answer bots never end
        is_group = written.chat.type != "private"
        text = self._addressed(written) if is_group else written.text or written.caption
        if text is None:
            return None
        images, notes = await self._images(written)
        metadata: dict[str, object] = {"chat_id": written.chat.id, "message_id": written.message_id}
        if is_group:
            metadata["group"] = True
        if written.is_topic_message:
            metadata["thread_id"] = written.message_thread_id
        sender = _sender(written.chat, written.author)
        return Message("\n".join([part for part in (text, *notes) if part]), sender, "telegram", metadata, images)

    async def _pressed(self, query: msgspec.Raw) -> Message | None:
        """A button as the message that it stands for; its question has no buttons any more."""
        try:
            pressed = msgspec.json.decode(query, type=Pressed)
        except msgspec.MsgspecError:
            return None  # of a newer API
        question = pressed.message
        if question is None or not pressed.data:
            return None  # too old: Telegram does not say where it stands
        with suppress(TelegramError):  # what was decided counts, also when its buttons stay
            await self._api.call("answerCallbackQuery", {"callback_query_id": pressed.id})
            await self._api.call(
                "editMessageReplyMarkup", {"chat_id": question.chat.id, "message_id": question.message_id}
            )
        metadata: dict[str, object] = {"chat_id": question.chat.id, "message_id": f"pressed {pressed.id}"}
        if question.is_topic_message:
            metadata["thread_id"] = question.message_thread_id
        return Message(pressed.data, _sender(question.chat, pressed.author), "telegram", metadata)

    def _addressed(self, written: Written) -> str | None:
        """A group's message without the bot's name; None when it is not for the bot."""
        text = written.text or written.caption
        name = re.compile(rf"@{re.escape(self._me.username)}\b", re.IGNORECASE)
        command = re.match(r"/\w+(@\w+)?", text)
        replied = written.reply_to_message.author if written.reply_to_message else None
        if command is not None and command[1] and not name.fullmatch(command[1]):
            return None  # for another bot
        is_meant = command is not None or name.search(text) or (replied is not None and replied.id == self._me.id)
        return name.sub("", text).strip() if is_meant else None

    async def _images(self, written: Written) -> tuple[list[Image], list[str]]:
        """The picture of a message, and a line about one that could not be had."""
        sizes = sorted(written.photo, key=lambda one: one.width, reverse=True)
        if written.document is not None and written.document.mime_type in IMAGE_TYPES:
            sizes = [written.document]
        if not sizes:
            return [], []
        fitting = [one for one in sizes if one.file_size <= IMAGE_BYTES]
        if not fitting:
            return [], ["(A picture was sent that is too large to be read.)"]
        try:
            return [Image.from_bytes(await self._api.download(fitting[0].file_id))], []
        except (TelegramError, ValueError) as error:
            if isinstance(error, TelegramError) and error.code not in FOREVER_BAD:
                raise  # tried again
            return [], ["(A picture was sent that could not be read.)"]


def _key_of(message: Message) -> tuple[object, object]:
    """The chat of a message, and its number."""
    about = dict(message.metadata or {})
    return about.get("chat_id") or message.sender, about.get("message_id")


def _place_of(message: Message) -> dict[str, object]:
    """The fields that say where an answer to a message goes."""
    about = dict(message.metadata or {})
    place: dict[str, object] = {"chat_id": about.get("chat_id") or message.sender}
    if "thread_id" in about:
        place["message_thread_id"] = about["thread_id"]
    return place


def _sender(chat: Chat, author: User) -> str:
    """In a group everybody has a conversation of their own, and is paired there on their own."""
    return str(author.id) if chat.type == "private" else f"{chat.id}/{author.id}"


class UpdateOffset:
    """Which update is the next one, in a file. Telegram itself keeps what was never confirmed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> int | None:
        """The number of the next update; None when nothing was kept that can be read."""
        try:
            return int(self._path.read_text())
        except (FileNotFoundError, ValueError):
            return None

    def write(self, number: int) -> None:
        """Keep it; after a crash the file holds this number or the one before."""
        draft = self._path.with_suffix(".draft")
        with draft.open("w") as file:
            file.write(str(number))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)


_bot: Bot | None = None
