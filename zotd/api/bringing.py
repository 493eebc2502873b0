"""What a client may bring into a session besides prompts: an environment, extensions, a server, a key.

| | `read` | `submit` | `submit`, other machine | `approve` |
|---|---|---|---|---|
| `env`: what tools and extensions run in | ignored | used, without keys | ignored | used |
| `extensions` by path | - | used | forbidden | used |
| `base_url`, `secrets`: where keys and prompts go | - | forbidden | forbidden | used |

A model server decides which tools are called, and in the mode `yolo` nobody is asked about that. So whoever chooses the
server has a shell, which takes the role `approve`.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

import msgspec

from zotd.api.connection import ServerConnection
from zotd.api.dispatch import Invocation
from zotd.sessions.session import Session
from zotd.wire.api import GivenFor, Role, SessionConfigure, SessionCreate
from zotd.wire.errors import Code, CommandError
from zotd.workspace.environment import Environment

Params = TypeVar("Params", SessionCreate, SessionConfigure)

REDIRECTING = ("base_url", "secrets")
"""Fields that say to which server prompts go, or on whose account."""


def may_redirect(call: Invocation) -> bool:
    """Whether the client may say where keys and prompts go, by a URL or by a key."""
    return call.door.stdio or call.door.role >= Role.APPROVE


def may_bring_code(call: Invocation) -> bool:
    """Whether the client says what tools and extensions run in, and by that what they run; nobody is asked about it.

    A program of this user could run the same by itself. A client of another machine could not, unless it may decide.
    """
    is_remote = isinstance(call.door, ServerConnection) and call.door.is_remote
    return call.door.role >= (Role.APPROVE if is_remote else Role.SUBMIT)


def checked(call: Invocation, params: Params) -> Params:
    """The parameters without what is not to be used of the environment.

    Raises:
        CommandError: they hold something for which the client lacks the role.
    """
    if not may_redirect(call):
        for field in REDIRECTING:
            if getattr(params, field) is not None:
                sentence = f"{field} decides where keys and prompts are sent, which requires the role approve"
                raise CommandError(Code.FORBIDDEN, f"{sentence}; {_way_out(call)}")
        if params.env is not None:
            keys = call.manager.models.catalog.key_variables()
            env = {name: value for name, value in params.env.items() if name not in keys}
            params = msgspec.structs.replace(params, env=env)
    if may_bring_code(call):
        return params
    if params.extensions:
        sentence = "loading extensions by path from another machine requires the role approve; ask for it in hello"
        raise CommandError(Code.FORBIDDEN, sentence)
    return msgspec.structs.replace(params, env=None)


def environment_of(call: Invocation, session: Session, env: Mapping[str, str]) -> Environment:
    """The client's environment for a session, with the keys that the client may bring."""
    found = call.manager.environment(env, session.environment.api_key)
    return found if may_redirect(call) else replace(found, keys=session.environment.keys)


def check_is_missed(session: Session, place: GivenFor) -> None:
    """Raise CommandError unless the session lacks the key that it was given for this place."""
    settings = session.ledger.row.settings
    is_missed = settings.own_key and session.environment.api_key is None
    if not is_missed or (settings.provider, settings.base_url) != (place.provider, place.base_url):
        sentence = "the session does not need this key: it has one, requires none, or sends its requests elsewhere now"
        raise CommandError(Code.CONFLICT, sentence)


def _way_out(call: Invocation) -> str:
    if call.door.confinement is not None and call.door.confinement.checks_modes:
        return "programs started by zotd can only use the providers of config.toml"
    if call.door.ceiling >= Role.APPROVE:
        return "ask for it in hello"
    return "use a token that has it: zotctl token create NAME --role approve"
