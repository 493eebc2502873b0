"""Options of the typed clients: where the daemon is, and the settings of a new session."""

from typing import TypedDict, Unpack

import msgspec

from zotd.client.place import Place
from zotd.wire import api, version


class Where(TypedDict, total=False):
    """Location of the daemon; by default as the environment says, see `place.of`."""

    path: str | None
    """Path of a local socket."""
    host: str | None
    """URL of a daemon on another machine: `wss://host:port`."""
    token_file: str | None
    ca_file: str | None


class SessionSettings(TypedDict, total=False):
    """Settings of a new session; the daemon chooses what is absent. See `wire.api.SessionCreate`."""

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
    fallback: list[str]
    mode: str
    extensions: list[str]
    no_ext: bool
    ephemeral: bool
    request_id: str


def new_session(where: Place, cwd: str, api_key: str | None, **settings: Unpack[SessionSettings]) -> api.SessionCreate:
    """Return the parameters of `session.create`. `cwd` is made absolute, relative to this program's directory.

    Raises `ClientError` for a relative path and a daemon on another machine.
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
    """Return the client's introduction, with the protocol versions that it supports."""
    return api.Hello(
        client=api.Client(name=name, kind="python", version=version.VERSION),
        protocol=version.protocols(),
        role=role,
        can_approve=can_approve,
    )
