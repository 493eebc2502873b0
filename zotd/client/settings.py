"""What the typed clients send about themselves and about a new session."""

from typing import TypedDict, Unpack

import msgspec

from zotd.client.place import Place
from zotd.wire import api, version


class Where(TypedDict, total=False):
    """Where the daemon is, when the environment does not say so; see `place.of`."""

    path: str | None
    """Of its socket."""
    host: str | None
    """URL of another machine's: `wss://host:port`."""
    token_file: str | None
    ca_file: str | None


class SessionSettings(TypedDict, total=False):
    """Of a new session; what is absent is the daemon's choice. See `wire.api.SessionCreate`."""

    name: str
    provider: str
    model: str
    reasoning: str
    base_url: str
    system_prompt: str
    append_system_prompt: list[str]
    tools: list[str]
    no_tools: bool
    max_steps: int
    budget_usd: float
    budget_tokens: int
    mode: str
    extensions: list[str]
    no_ext: bool
    ephemeral: bool
    request_id: str


def new_session(where: Place, cwd: str, api_key: str | None, **settings: Unpack[SessionSettings]) -> api.SessionCreate:
    """Parameters of `session.create`; `cwd` becomes absolute here, where relative paths mean something.

    Raises `ClientError`: a relative path means nothing to a daemon on another machine.
    """
    return msgspec.structs.replace(
        api.SessionCreate(
            cwd=where.real_path(cwd),
            env=where.variables,
            secrets=api.Secrets(api_key) if api_key else None,
        ),
        **settings,
    )


def hello(name: str, *, can_approve: bool, role: str | None) -> api.Hello:
    """Who we are, and the protocols that we speak."""
    return api.Hello(
        client=api.Client(name=name, kind="python", version=version.VERSION),
        protocol=version.protocols(),
        role=role,
        can_approve=can_approve,
    )
