"""What a chat sees while an answer is on its way: the typing sign, and for a long run a message that changes.

Telegram takes about one message per second in a chat and twenty per minute in a group, changes included: the sign comes
every 4 s, and the message changes every 10 s at most. It goes when the answer is there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec
from msgspec import Struct

from zotd.channels.telegram_api import Api, TelegramError

SIGN_S = 3.5
"""Between two typing signs; one lasts for 5 s."""

FIRST_S = 15.0
"""How long a run works before there is a message about it; most are done by then."""

EDIT_S = 10.0
"""Between two changes of that message."""

MAX_RUNS = 100
"""That are remembered; the message of a forgotten one stays."""

REFUSED = range(400, 430)
"""Error codes when a message is gone, too old, or says the same already, and when there were too many requests."""

Key = tuple[object, object]
"""The chat, and the message that is answered."""


class _Sent(Struct, frozen=True):
    message_id: int


@dataclass(slots=True)
class _Run:
    since: float
    signed: float | None = None
    """When the last sign was shown."""
    changed: float = 0.0
    text: str = ""
    message: int | None = None


class ProgressMessages:
    """That of all runs of one bot."""

    def __init__(self, api: Api, now: Callable[[], float]) -> None:
        """`now`: seconds."""
        self._api = api
        self._now = now
        self._runs: dict[Key, _Run] = {}

    async def show(self, key: Key, place: Mapping[str, object], text: str) -> None:
        """Show that the agent works, at `text`; `place`: the fields that say where."""
        now = self._now()
        run = self._runs.setdefault(key, _Run(now))
        if len(self._runs) > MAX_RUNS:
            del self._runs[next(iter(self._runs))]
        if run.signed is None or now - run.signed >= SIGN_S:
            run.signed = now
            await self._try("sendChatAction", {**place, "action": "typing"})
        if not text or text == run.text or now - run.since < FIRST_S or (run.text and now - run.changed < EDIT_S):
            return
        run.changed, run.text = now, text
        if run.message is None:
            fields = {**place, "text": text, "disable_notification": True}
            sent = await self._try("sendMessage", fields)
            run.message = None if sent is None else msgspec.json.decode(sent, type=_Sent).message_id
        else:
            await self._try("editMessageText", {"chat_id": key[0], "message_id": run.message, "text": text})

    async def end(self, key: Key) -> None:
        """The answer is there."""
        run = self._runs.pop(key, None)
        if run is not None and run.message is not None:
            await self._try("deleteMessage", {"chat_id": key[0], "message_id": run.message})

    async def _try(self, method: str, fields: Mapping[str, object]) -> msgspec.Raw | None:
        """The result; None when it was refused, for which the next sign is soon enough."""
        try:
            return await self._api.call(method, fields, is_patient=False)
        except TelegramError as error:
            if error.code not in REFUSED:
                raise
            return None
