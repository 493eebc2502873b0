"""What the typed clients send about themselves and about a new session."""

import os
from collections.abc import Mapping
from typing import TypedDict, Unpack

import msgspec

from zotd.client.environment import shared
from zotd.wire import api, version


class Settings(TypedDict, total=False):
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


def new_session(
    cwd: str, env: Mapping[str, str], api_key: str | None, **settings: Unpack[Settings]
) -> api.SessionCreate:
    """Parameters of `session.create`; `cwd` becomes absolute here, where relative paths mean something."""
    return msgspec.structs.replace(
        api.SessionCreate(
            cwd=real_directory(cwd),
            env=shared(env),
            secrets=api.Secrets(api_key) if api_key else None,
        ),
        **settings,
    )


def real_directory(path: str) -> str:
    """The absolute path without symbolic links that the daemon knows the directory by."""
    return os.path.realpath(path)


def hello(name: str, *, can_approve: bool, role: str | None) -> api.Hello:
    """Who we are, and the one protocol that we speak."""
    return api.Hello(
        client=api.Client(name=name, kind="python", version=version.VERSION),
        protocol=(version.PROTOCOL, version.PROTOCOL),
        role=role,
        can_approve=can_approve,
    )
