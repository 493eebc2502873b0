"""Commands about the vendors' API keys: check, store, remove, and list the sources. No response contains a key."""

from zotd.wire.base import Frozen


class AuthScope(Frozen, frozen=True):
    """With `session`: for that session, including the environment of its client; without: for a new session."""

    session: str | None = None


class Login(Frozen, frozen=True):
    """A key for a vendor; it is stored in `auth.json` only."""

    provider: str
    api_key: str


class CheckKey(Frozen, frozen=True):
    """A key to check before it is stored: it is used to request the vendor's list of models."""

    provider: str
    api_key: str


class KeyCheck(Frozen, frozen=True):
    """Outcome of checking a key with its vendor."""

    title: str
    """The vendor's name for display."""
    outcome: str
    """`accepted`; `refused` (status 401); `unreachable`; `unknown`: any other answer."""
    sentence: str
    """The outcome as a sentence for the user."""


class Logout(Frozen, frozen=True):
    """The vendor whose key is removed from `auth.json`."""

    provider: str


class KeyInfo(Frozen, frozen=True, omit_defaults=False):
    """A vendor and the source of its API key."""

    provider: str
    title: str
    """The vendor's name for display."""
    variables: list[str]
    """Environment variables for its key; empty: it needs no key."""
    source: str | None
    """The first source that has a key: `option` (`--api-key`), `environment` (of the client), `auth.json`,
    `api_key_command` (will be run) or `daemon` (its environment); null: none."""
    stored: bool
    """Whether `auth.json` has a key, even if another source takes precedence."""


class KeyList(Frozen, frozen=True):
    """Every vendor of the catalog, in its order."""

    providers: list[KeyInfo]
