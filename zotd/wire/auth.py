"""Commands about the vendors' keys: trying one, giving one, taking it back, and where each comes from. No answer holds a key."""

from zotd.wire.base import Frozen


class AuthScope(Frozen, frozen=True):
    """As a session has it, with what its client's environment holds; without one, as a new session would."""

    session: str | None = None


class Login(Frozen, frozen=True):
    """A key for a vendor: it is put into `auth.json` and nowhere else."""

    provider: str
    api_key: str


class CheckKey(Frozen, frozen=True):
    """A key that somebody has typed, before it is stored: its vendor is asked for the list of models."""

    provider: str
    api_key: str


class KeyCheck(Frozen, frozen=True):
    """What the vendor says of it."""

    title: str
    """The vendor's name for display."""
    outcome: str
    """`accepted`; `refused` (status 401); `unreachable`; `unknown`: any other answer."""
    sentence: str
    """The outcome as a sentence for the user."""


class Logout(Frozen, frozen=True):
    """The vendor whose key in `auth.json` is to go."""

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
