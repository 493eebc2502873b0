"""The Telegram channel: a bot that people write to. A module with channel functions, in a separate process.

The Bot API repeats a message until a request names a higher offset (https://core.telegram.org/bots/api#getupdates).
`recv` is called again only after the daemon has stored the message that it returned last, so that is when the offset is
advanced. It is stored first, in the working directory, which is private to this channel.

Like the module files of users, it keeps its state in a global variable.
"""

import os
import re
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from zotd.channels import telegram_buttons
from zotd.channels.telegram_api import CALL_S, IMAGE_BYTES, Api, Chat, Pressed, TelegramError, Update, User, Written
from zotd.channels.telegram_progress import ProgressMessages
from zotd.channels.telegram_text import Piece, pieces
from zotd.sdk import Image, Message

POLL_S = 50
"""How long Telegram keeps a request for messages open. Proxies close connections that are silent for a minute."""

MAX_UNFINISHED = 100
"""Limit of remembered answers of which only some pieces were sent."""

IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})

UNREADABLE = 400
"""Error code of a request that Telegram cannot parse, for example because of unknown tags."""


async def connect() -> None:
    """Connect the bot."""
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
    """Return the next message for the bot."""
    assert _bot is not None
    return await _bot.next()


async def busy(message: Message) -> None:
    """Show the sender that the agent is working. Telegram shows the sign for 5 s or until the next message."""
    assert _bot is not None
    await _bot.type(message)


async def send(message: Message) -> None:
    """Send an answer, in several messages if it is too long for one."""
    assert _bot is not None
    await _bot.answer(message)


class Bot:
    """One bot, with its position in the updates and its unfinished answers."""

    def __init__(self, api: "Api", me: User, now: Callable[[], float]) -> None:
        """Create a bot for a checked token; see `Bot.open`."""
        self._progress = ProgressMessages(api, now)
        self._api = api
        self._me = me
        self._place = UpdateOffset(Path(f"offset-{me.id}"))
        self._updates: deque[Update] = deque()
        self._handed_over: int | None = None
        """Id of the update that `next` has returned last, until the daemon has stored it."""
        self._sent: dict[tuple[object, ...], int] = {}
        """Number of pieces sent of each answer that is not complete."""

    @classmethod
    async def open(cls, token: str, base_url: str, now: Callable[[], float] = time.monotonic) -> "Bot":
        """Check the token and create a bot; `now` returns seconds, for rate limits."""
        api = Api(token, base_url)
        try:
            return cls(api, msgspec.json.decode(await api.call("getMe"), type=User), now)
        except BaseException:
            await api.close()
            raise

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()

    async def next(self) -> Message:
        """Return the next message. The call confirms that the daemon has stored the one before."""
        if self._handed_over is not None:
            self._pass(self._handed_over)
        while True:
            while not self._updates:
                self._updates.extend(await self._poll())
            update = self._updates[0]
            message = await self._read(update)  # if that fails, the update stays the first one
            if message is not None:
                self._handed_over = update.update_id
                return message
            self._pass(update.update_id)

    async def answer(self, message: Message) -> None:
        """Send the pieces of an answer. A second try of the same answer continues where the first one failed."""
        about = dict(message.metadata or {})
        if "callback" in about and await telegram_buttons.replied(self._api, about, message.text):
            return
        key = (about.get("chat_id"), about.get("message_id"), message.text)
        fields = _place_of(message)
        if "group" in about:
            # Without a reply if the message was deleted in the meantime.
            fields["reply_parameters"] = {"message_id": about.get("message_id"), "allow_sending_without_reply": True}
        cut = list(pieces(message.text))
        for number, piece in enumerate(cut):
            # Buttons belong to the last piece, where the question ends.
            if message.choices and number == len(cut) - 1:
                fields["reply_markup"] = telegram_buttons.keyboard(message.choices)
            if number >= self._sent.get(key, 0):
                await self._say(fields, piece)
                self._sent[key] = number + 1
            fields.pop("reply_parameters", None)  # only the first piece quotes the message
        self._sent.pop(key, None)
        if len(self._sent) > MAX_UNFINISHED:
            del self._sent[next(iter(self._sent))]
        if not message.choices:
            with suppress(TelegramError):  # the answer was sent; a remaining sign is no reason to send it again
                await self._progress.end(_key_of(message))

    async def type(self, message: Message) -> None:
        """Show "typing…" in the chat of a message, and after a while what the agent is doing."""
        is_group = "group" in (message.metadata or {})
        await self._progress.show(_key_of(message), _place_of(message), message.text, is_group=is_group)

    async def _say(self, fields: Mapping[str, object], piece: Piece) -> None:
        """Send one message, formatted if Telegram accepts the formatting."""
        try:
            await self._api.call("sendMessage", {**fields, "text": piece.html, "parse_mode": "HTML"})
        except TelegramError as error:
            if error.code != UNREADABLE:
                raise
            await self._api.call("sendMessage", {**fields, "text": piece.text})

    def _pass(self, update_id: int) -> None:
        """Advance the offset beyond this update."""
        self._place.write(update_id + 1)
        self._handed_over = None
        # Stored before it is dropped here: if writing fails, the update is handed over again.
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
        """Convert an update to a message; return None if it is not addressed to the bot."""
        if update.callback_query:
            return await self._pressed(update.callback_query)
        try:
            written = msgspec.json.decode(update.message, type=Written)
        except msgspec.MsgspecError:
            return None  # another kind of update, or a message of a newer API
        if written.author is None or written.author.is_bot:
            return None  # two bots would answer each other for ever
        is_group = written.chat.type != "private"
        text = self._addressed(written) if is_group else written.text or written.caption
        if text is None:
            return None
        text = f"{telegram_buttons.answered_by(written)}{text}"
        # After the check above: a picture that is not addressed to the bot must not be downloaded.
        images, notes = await self._images(written)
        metadata: dict[str, object] = {"chat_id": written.chat.id, "message_id": written.message_id}
        if is_group:
            metadata["group"] = True
        if written.is_topic_message:
            metadata["thread_id"] = written.message_thread_id
        sender = _sender(written.chat, written.author)
        return Message("\n".join([part for part in (text, *notes) if part]), sender, "telegram", metadata, images)

    async def _pressed(self, query: msgspec.Raw) -> Message | None:
        """Convert a pressed button to a message; the reply to it changes the button."""
        try:
            pressed = msgspec.json.decode(query, type=Pressed)
        except msgspec.MsgspecError:
            return None  # an update of a newer API
        question = pressed.message
        if question is None or not pressed.data:
            return None  # the message is too old: Telegram no longer names its chat
        if await telegram_buttons.is_settled(self._api, pressed):
            return None
        metadata: dict[str, object] = {
            "chat_id": question.chat.id,
            "message_id": f"pressed {pressed.id}",
            "callback": pressed.id,
            "question": question.message_id,
        }
        if question.is_topic_message:
            metadata["thread_id"] = question.message_thread_id
        return Message(pressed.data, _sender(question.chat, pressed.author), "telegram", metadata)

    def _addressed(self, written: Written) -> str | None:
        """Return a group message without the bot's name; None if it is not addressed to the bot."""
        text = written.text or written.caption
        name = re.compile(rf"@{re.escape(self._me.username)}\b", re.IGNORECASE)
        command = re.match(r"/\w+(@\w+)?", text)
        replied = written.reply_to_message.author if written.reply_to_message else None
        if command is not None and command[1] and not name.fullmatch(command[1]):
            return None  # for another bot
        is_meant = command is not None or name.search(text) or (replied is not None and replied.id == self._me.id)
        return name.sub("", text).strip() if is_meant else None

    async def _images(self, written: Written) -> tuple[list[Image], list[str]]:
        """Download the picture of a message; also return a line about one that cannot be read."""
        # Telegram sends a photo in several sizes; the largest that fits is used.
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
            if isinstance(error, TelegramError) and error.code not in telegram_buttons.FOREVER_BAD:
                raise  # temporary: the update is read again
            return [], ["(A picture was sent that could not be read.)"]


def _key_of(message: Message) -> tuple[object, object]:
    """Return the chat and the id of a message."""
    about = dict(message.metadata or {})
    return about.get("chat_id") or message.sender, about.get("message_id")


def _place_of(message: Message) -> dict[str, object]:
    """Return the API fields that address the chat of a message."""
    about = dict(message.metadata or {})
    place: dict[str, object] = {"chat_id": about.get("chat_id") or message.sender}
    if "thread_id" in about:
        place["message_thread_id"] = about["thread_id"]
    return place


def _sender(chat: Chat, author: User) -> str:
    """Return the id of a sender. In a group, each person has a separate conversation and pairing."""
    return str(author.id) if chat.type == "private" else f"{chat.id}/{author.id}"


class UpdateOffset:
    """The number of the next update, in a file. Telegram keeps updates that were not confirmed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> int | None:
        """Read the number; return None if the file is missing or damaged."""
        try:
            return int(self._path.read_text())
        except (FileNotFoundError, ValueError):
            return None

    def write(self, number: int) -> None:
        """Store the number atomically; after a crash the file has this number or the one before."""
        draft = self._path.with_suffix(".draft")
        with draft.open("w") as file:
            file.write(str(number))
            file.flush()
            os.fsync(file.fileno())
        draft.replace(self._path)


_bot: Bot | None = None
