"""Commands about push messages: browsers subscribe and are listed and removed."""

from zotd.api.connection import UsedToken
from zotd.api.dispatch import Invocation
from zotd.api.methods.shared import connection_of
from zotd.clock import rfc3339
from zotd.push.service import EndpointError, PushService
from zotd.push.subscriptions import Subscription, TooManyError
from zotd.wire import api
from zotd.wire.errors import Code, CommandError

NAME_CHARS = 100
"""Longest description of a browser."""

ENDPOINT_CHARS = 2_048
"""Longest endpoint; those of browsers have a few hundred characters."""

KEY_CHARS = 128
"""Longest key; a public key has 87 characters."""


async def key(push: PushService | None, call: Invocation, params: api.Nothing) -> api.PushKey:
    """Return the key with which a browser subscribes at its push service."""
    del call, params
    return api.PushKey(await _service(push).public_key())


async def subscribe(push: PushService | None, call: Invocation, params: api.PushSubscribe) -> api.PushBrowser:
    """Send push messages to a browser from now on."""
    if not params.endpoint or max(len(params.endpoint) / ENDPOINT_CHARS, len(params.public) / KEY_CHARS) > 1:
        raise CommandError(Code.BAD_REQUEST, f"an endpoint has 1 to {ENDPOINT_CHARS} characters, a key {KEY_CHARS}")
    admitted = connection_of(call).admitted
    token = admitted if isinstance(admitted, UsedToken) else None
    name = params.name.strip()[:NAME_CHARS] or call.door.sender
    asked = Subscription(
        id="",
        endpoint=params.endpoint,
        public=params.public,
        auth=params.auth,
        name=name,
        created=0,
        token="" if token is None else token.name,
        digest="" if token is None else token.digest,
    )
    try:
        return _info(await _service(push).subscribe(asked))
    except EndpointError as error:
        raise CommandError(Code.BAD_REQUEST, str(error)) from error
    except TooManyError as error:
        raise CommandError(Code.CONFLICT, str(error)) from error


async def unsubscribe(push: PushService | None, call: Invocation, params: api.PushUnsubscribe) -> None:
    """Send no more messages to the browser with this endpoint; does nothing if it has not subscribed."""
    del call
    await _service(push).unsubscribe(params.endpoint)


async def listing(push: PushService | None, call: Invocation, params: api.Nothing) -> api.PushBrowsers:
    """List the browsers."""
    del call, params
    return api.PushBrowsers([_info(one) for one in _service(push).subscriptions])


async def remove(push: PushService | None, call: Invocation, params: api.PushRemove) -> None:
    """Send no more messages to a browser."""
    del call
    service = _service(push)
    if params.browser not in {one.id for one in service.subscriptions}:
        raise CommandError(Code.NOT_FOUND, f'no browser "{params.browser}" has subscribed; push.list names them')
    await service.unsubscribe(params.browser)


def _service(push: PushService | None) -> PushService:
    if push is None:
        raise CommandError(Code.UNSUPPORTED, "this daemon sends no push messages; `zotctl status` says why")
    return push


def _info(one: Subscription) -> api.PushBrowser:
    return api.PushBrowser(one.id, one.name, rfc3339(one.created), one.token)
