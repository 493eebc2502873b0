"""Sends push messages to all subscribed browsers, through the push service that each of them has named.

A message is encrypted for its browser; the push service sees its size, which is always the same, its urgency, and a
digest of its session, with which a newer message replaces one that was not delivered yet. Messages that cannot be sent
are lost: a person sees what waits when they look.
"""

import asyncio
import base64
import hashlib
import json
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Protocol
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from zotd import ids
from zotd.config.current import CurrentConfig
from zotd.core.ports import StorageError
from zotd.push.subscriptions import Subscription, SubscriptionStore

log = logging.getLogger(__name__)

SERVICES = (
    "https://fcm.googleapis.com",
    "https://updates.push.services.mozilla.com",
    "https://web.push.apple.com",
)
"""Push services of browsers."""

SUFFIXES = (".push.apple.com", ".push.services.mozilla.com", ".notify.windows.com")
"""Further hosts of the same vendors."""

MAX_WAITING = 32
"""Messages that wait while others are sent; the oldest are dropped."""

TTL_S = {"needs_you": 24 * 3600}
"""How long the push service keeps a message for a browser that cannot be reached, by reason."""

DONE_TTL_S = 3600

GONE = frozenset({404, 410})
"""The subscription does not exist any more."""

TOPIC_CHARS = 32
"""Longest name under which a push service replaces a message."""


class EndpointError(Exception):
    """The endpoint is not at a known push service, or the keys are invalid; the message is one sentence."""


class Poster(Protocol):
    """Sends requests to push services: `zotd.push.delivery.HttpPoster`."""

    async def post(self, url: str, headers: dict[str, str], body: bytes) -> int:
        """Return the status of the last response, or 0 if there was none; bounded in time."""
        ...


class PushMessage(Struct, frozen=True):
    """What a person is told."""

    reason: str
    """`needs_you`, `done` or `failed`, as in `zotd.wire.events.Attention`."""
    text: str
    session: str


class PushService:
    """Sends messages in tasks of its own."""

    def __init__(
        self,
        store: SubscriptionStore,
        config: CurrentConfig,
        *,
        spawn: Callable[[str, Coroutine[object, object, None]], None],
        stands: Callable[[Subscription], bool],
    ) -> None:
        """Create the service.

        Args:
            store: the subscriptions.
            config: the configuration that holds now.
            spawn: starts a named task.
            stands: tells whether a subscription's access token is still valid; blocks for reading a file.
        """
        self._store = store
        self._spawn = spawn
        self._config = config
        self._stands = stands
        self._waiting: deque[PushMessage] = deque(maxlen=MAX_WAITING)
        self._is_sending = False
        self._changing = asyncio.Lock()
        """Held while the file is written: two changes at once could lose one."""

    @property
    def subscriptions(self) -> list[Subscription]:
        """All subscriptions, oldest first."""
        return list(self._store.all)

    async def public_key(self) -> str:
        """Return the key that browsers need to subscribe; makes one if there is none. Raises StorageError."""
        async with self._changing:
            return await asyncio.to_thread(self._public_key)

    async def subscribe(self, asked: Subscription) -> Subscription:
        """Add a browser; return it as it is stored, with an id.

        Raises:
            EndpointError: its endpoint or its keys are not acceptable.
            TooManyError: there is no room.
            StorageError: it cannot be stored.
        """
        self._check_endpoint(asked.endpoint)
        await asyncio.to_thread(_check_keys, asked)
        added = msgspec.structs.replace(asked, id=ids.new("d"), created=int(time.time()))
        async with self._changing:
            await asyncio.to_thread(self._public_key)  # there is one, unless the file was removed
            return await asyncio.to_thread(self._store.add, added)

    async def unsubscribe(self, removed: str) -> bool:
        """Remove the browser with this id or endpoint; False if there is none. Raises StorageError."""
        async with self._changing:
            return await asyncio.to_thread(self._store.remove, removed)

    def notify(self, message: PushMessage) -> None:
        """Send a message to all browsers, later. Never raises."""
        if not self._store.all:
            return
        self._waiting.append(message)
        if not self._is_sending:
            self._is_sending = True
            self._spawn("push messages", self._send_all())

    async def _send_all(self) -> None:
        try:
            while self._waiting:
                await self._send_waiting()
        finally:
            self._is_sending = False

    async def _send_waiting(self) -> None:
        from zotd.push.delivery import HttpPoster  # noqa: PLC0415  (10 MB, for those who subscribe)

        async with HttpPoster() as http:
            while self._waiting:
                await self._tell_all(http, self._waiting.popleft())

    async def _tell_all(self, http: Poster, message: PushMessage) -> None:
        async with asyncio.TaskGroup() as tasks:
            for one in self.subscriptions:
                tasks.create_task(self._deliver(http, one, message))

    async def _deliver(self, http: Poster, to: Subscription, message: PushMessage) -> None:
        """Send one message to one browser; never raises."""
        try:
            if not await asyncio.to_thread(self._stands, to):
                await self._drop(to, "its token is no longer valid")
                return
            self._check_endpoint(to.endpoint)  # the configuration may have changed
            headers, body = await asyncio.to_thread(self._request, to, message)
        except (EndpointError, ValueError, StorageError) as error:
            log.warning('no push message for "%s" (%s): %s', to.name, to.id, error)
            return
        status = await http.post(to.endpoint, headers, body)
        if status in GONE:
            await self._drop(to, "the browser has ended the subscription")
        elif not 200 <= status < 300:
            log.warning('a push message for "%s" (%s) was not taken: status %s', to.name, to.id, status or "none")

    async def _drop(self, dropped: Subscription, reason: str) -> None:
        log.info('removed the push subscription of "%s" (%s): %s', dropped.name, dropped.id, reason)
        try:
            await self.unsubscribe(dropped.id)
        except StorageError as error:
            log.warning("%s", error)

    def _public_key(self) -> str:
        from zotd.push import encryption  # noqa: PLC0415  (10 MB, for those who subscribe)

        if not self._store.key:
            self._store.keep_key(encryption.new_key())
        return encryption.to_text(encryption.public_of(encryption.key_of(self._store.key)))

    def _request(self, to: Subscription, message: PushMessage) -> tuple[dict[str, str], bytes]:
        from zotd.push import encryption  # noqa: PLC0415  (as above)

        settings = self._config.value.push
        place = urlsplit(to.endpoint)
        said = {"reason": message.reason, "text": message.text, "session": message.session}
        body = encryption.encrypted(
            json.dumps(said, ensure_ascii=False).encode(errors="replace"),
            to.public,
            to.auth,
            salt=os.urandom(encryption.SALT_BYTES),
            own=encryption.key_of(encryption.new_key()),
        )
        topic = base64.urlsafe_b64encode(hashlib.sha256(message.session.encode()).digest())[:TOPIC_CHARS].decode()
        headers = {
            "Authorization": encryption.authorization(
                f"{place.scheme}://{place.netloc}",
                encryption.key_of(self._store.key),
                contact=settings.contact,
                now=time.time(),
            ),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(TTL_S.get(message.reason, DONE_TTL_S)),
            "Topic": topic,
            "Urgency": "high" if message.reason == "needs_you" else "normal",
        }
        return headers, body

    def _check_endpoint(self, endpoint: str) -> None:
        """Raise EndpointError unless it is at a known push service: a client must not make the daemon ask any URL."""
        try:
            place = urlsplit(endpoint)
            origin, host = f"{place.scheme}://{place.netloc}", place.hostname or ""
        except ValueError as error:
            raise EndpointError("the endpoint is not a URL") from error
        is_known = place.scheme == "https" and place.netloc == host and host.endswith(SUFFIXES)
        if not (is_known or origin in SERVICES or origin in self._config.value.push.services):
            raise EndpointError(f'"{origin[:100]}" is not a known push service; push.services in config.toml adds one')


def _check_keys(asked: Subscription) -> None:
    from zotd.push import encryption  # noqa: PLC0415  (as above)

    try:
        encryption.check_receiver(asked.public, asked.auth)
    except ValueError as error:
        raise EndpointError("the keys of the subscription are not valid") from error
