"""Shows the progress of a run in a chat: the typing sign, and a message that is edited.

The message says what the run does, or has the end of the reply that is being written.

Telegram accepts about one message per second in a chat and twenty per minute in a group, edits included. The sign is sent
every 4 s, and the message is edited at most every 4 s, in a group every 10 s. It is deleted when the answer arrives, which
is a message of its own: edits make no phone ring.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from zotd.channels.telegram_api import Api, TelegramError

SIGN_S = 3.5
"""Time between two typing signs; Telegram shows one for 5 s."""

FIRST_S = 15.0
"""Time before the first message about what a run does; most runs end earlier."""

REPLY_S = 4.0
"""Time before the first message with a part of the reply; in a group `FIRST_S`."""

EDIT_S = 4.0
"""Shortest time between two edits of that message."""

GROUP_EDIT_S = 10.0
"""The same in a group, where all members together have twenty messages a minute."""

PAUSE_S = 30.0
"""Time without requests after too many of them, if Telegram names none."""

MAX_RUNS = 100
"""Limit of remembered runs. The message of a forgotten run stays in the chat."""

REFUSED = range(400, 430)
"""Error codes for a message that is deleted, too old or unchanged, and for too many requests."""

TOO_MANY = 429
"""The last of them."""

Key = tuple[object, object]
"""The chat and the message that is being answered."""


class _Sent(Struct, frozen=True):
    message_id: int


@dataclass(slots=True)
class _Run:
    since: float
    signed: float | None = None
    """Time of the last typing sign."""
    changed: float = 0.0
    text: str = ""
    message: int | None = None


class ProgressMessages:
    """The progress of all runs of one bot."""

    def __init__(self, api: Api, now: Callable[[], float]) -> None:
        """Use `now` as the clock, in seconds."""
        self._api = api
        self._now = now
        self._runs: dict[Key, _Run] = {}
        self._quiet: dict[object, float] = {}
        """By chat: until when nothing is sent, because Telegram has demanded that."""

    async def show(self, key: Key, place: Mapping[str, object], text: str, *, is_group: bool = False) -> None:
        """Show that the agent is working; `text` says on what, `place` has the API fields of the chat.

        A `text` of several lines has a part of the reply.
        """
        now = self._now()
        if now < self._quiet.get(key[0], now):
            return
        self._quiet.pop(key[0], None)
        run = self._runs.setdefault(key, _Run(now))
        if len(self._runs) > MAX_RUNS:
            del self._runs[next(iter(self._runs))]
        if run.signed is None or now - run.signed >= SIGN_S:
            run.signed = now
            await self._try("sendChatAction", {**place, "action": "typing"})
        first_s = REPLY_S if "\n" in text and not is_group else FIRST_S
        edit_s = GROUP_EDIT_S if is_group else EDIT_S
        # Telegram treats an edit without a change as an error.
        if not text or text == run.text or now - run.since < first_s or (run.text and now - run.changed < edit_s):
            return
        run.changed, run.text = now, text
        if run.message is None:
            # Without a notification: only the answer should make the phone ring.
            fields = {**place, "text": text, "disable_notification": True}
            sent = await self._try("sendMessage", fields)
            run.message = None if sent is None else msgspec.json.decode(sent, type=_Sent).message_id
        else:
            await self._try("editMessageText", {"chat_id": key[0], "message_id": run.message, "text": text})

    async def end(self, key: Key) -> None:
        """Delete the message about a run that has been answered."""
        run = self._runs.pop(key, None)
        if run is not None and run.message is not None:
            await self._try("deleteMessage", {"chat_id": key[0], "message_id": run.message})

    async def _try(self, method: str, fields: Mapping[str, object]) -> msgspec.Raw | None:
        """Call the API; return None if it refused, because the next sign is soon enough."""
        try:
            return await self._api.call(method, fields, is_patient=False)
        except TelegramError as error:
            if error.code not in REFUSED:
                raise
            if error.code == TOO_MANY:
                pause_s = PAUSE_S if error.retry_after_s is None else error.retry_after_s
                self._quiet[fields["chat_id"]] = self._now() + pause_s
            return None
