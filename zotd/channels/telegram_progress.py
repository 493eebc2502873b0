"""Shows the progress of a run in a chat: the typing sign, and for a long run a message that is edited.

Telegram accepts about one message per second in a chat and twenty per minute in a group, edits included. The sign is sent
every 4 s, and the message is edited at most every 10 s. It is deleted when the answer arrives.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from zotd.channels.telegram_api import Api, TelegramError

SIGN_S = 3.5
"""Time between two typing signs; Telegram shows one for 5 s."""

FIRST_S = 15.0
"""Time before the first message about a run; most runs end earlier."""

EDIT_S = 10.0
"""Shortest time between two edits of that message."""

MAX_RUNS = 100
"""Limit of remembered runs. The message of a forgotten run stays in the chat."""

REFUSED = range(400, 430)
"""Error codes for a message that is deleted, too old or unchanged, and for too many requests."""

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

    async def show(self, key: Key, place: Mapping[str, object], text: str) -> None:
        """Show that the agent is working; `text` says on what, `place` has the API fields of the chat."""
        now = self._now()
        run = self._runs.setdefault(key, _Run(now))
        if len(self._runs) > MAX_RUNS:
            del self._runs[next(iter(self._runs))]
        if run.signed is None or now - run.signed >= SIGN_S:
            run.signed = now
            await self._try("sendChatAction", {**place, "action": "typing"})
        # Telegram treats an edit without a change as an error.
        if not text or text == run.text or now - run.since < FIRST_S or (run.text and now - run.changed < EDIT_S):
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
            return None
