"""What a client may bring into a session besides prompts: environment, extensions, MCP servers, model server and key.

| | `read` | `submit` | `submit`, other machine | `approve` |
|---|---|---|---|---|
| `env`: environment of tools and extensions | ignored | used, without keys | ignored | used |
| `extensions` by path, MCP servers | - | used | forbidden | used |
| `base_url`, `secrets`: destination of keys and prompts | - | forbidden | forbidden | used |

The model server decides which tools are called, and in the mode `yolo` without any approval. Choosing the server is
therefore equivalent to a shell, and needs the role `approve`.
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
"""Fields that determine the server that prompts are sent to, or the account that is billed."""


def may_redirect(call: Invocation) -> bool:
    """Whether the client may determine where keys and prompts are sent, by a URL or by a key."""
    return call.door.stdio or call.door.role >= Role.APPROVE


def may_bring_code(call: Invocation) -> bool:
    """Whether the client may set the environment of tools and extensions, and thereby run code without an approval.

    A local program of this user could run the same code anyway. A client on another machine could not, so it needs the
    right to approve.
    """
    is_remote = isinstance(call.door, ServerConnection) and call.door.admitted is not None
    return call.door.role >= (Role.APPROVE if is_remote else Role.SUBMIT)


def checked(call: Invocation, params: Params) -> Params:
    """Return the parameters without parts of the environment that the client may not set.

    Raises:
        CommandError: they contain a field that needs another role.
    """
    if not may_redirect(call):
        for field in REDIRECTING:
            if getattr(params, field) is not None:
                sentence = f"{field} decides where keys and prompts are sent, which requires the role approve"
                raise CommandError(Code.FORBIDDEN, f"{sentence}; {_way_out(call)}")
        if params.env is not None:
            # Dropped, not refused: clients send their whole environment, keys included.
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
    """Return the client's environment for a session, including keys only if the client may bring them."""
    found = call.manager.environment(env, session.environment.api_key)
    return found if may_redirect(call) else replace(found, keys=session.environment.keys)


def check_is_missed(session: Session, place: GivenFor) -> None:
    """Raise CommandError unless the session has lost its own key and still uses this destination."""
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
