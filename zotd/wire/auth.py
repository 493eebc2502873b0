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
    """The vendor whose key is removed from `auth.json`, and whose login is ended."""

    provider: str


class LoginBegin(Frozen, frozen=True):
    """Begins a login by subscription; an earlier one to the same vendor that has not ended is cancelled."""

    provider: str
    method: str = ""
    """`browser`: the vendor's page sends the browser back to the machine of the daemon; `device`: the user enters a code
    on a page that any browser can open; empty: the vendor's preferred way."""


class LoginBegun(Frozen, frozen=True):
    """What the user has to do."""

    login: str
    """Id of this login, for `auth.wait` and `auth.cancel`."""
    title: str
    """The vendor's name for display."""
    method: str
    url: str
    """The page to open: HTTPS, or on this machine."""
    full_url: str
    """The same with the code already in it; empty if the vendor has no such page."""
    code: str
    """What to enter on the page; empty: nothing."""
    lifetime_s: float
    """How long there is for it, in seconds."""


class LoginWait(Frozen, frozen=True):
    """Waits until a login has ended, or for `wait_s` (at most 25)."""

    login: str
    wait_s: float = 25.0


class LoginOutcome(Frozen, frozen=True, omit_defaults=False):
    """How a login ended."""

    state: str
    """`pending`, `done` or `failed`."""
    sentence: str
    """Why it failed; empty: it did not."""


class LoginCancel(Frozen, frozen=True):
    """Ends a login that waits for its user."""

    login: str


class LoginInfo(Frozen, frozen=True, omit_defaults=False):
    """A login by subscription. The token is renewed by itself; `expires_at` says when that is next due."""

    account: str
    """The user's name there; empty: unknown."""
    logged_in_at: float
    """In seconds since 1970, as `expires_at`."""
    expires_at: float | None
    """When the current token ends; null: the vendor does not say."""
    place: str
    """Where the tokens are: `file` (`logins.json`) or `keyring`."""
    ended: str
    """Why the vendor no longer accepts the login; empty: it does."""


class KeyInfo(Frozen, frozen=True, omit_defaults=False):
    """A vendor and the source of its API key."""

    provider: str
    title: str
    """The vendor's name for display."""
    variables: list[str]
    """Environment variables for its key; empty: it needs no key."""
    source: str | None
    """The first source that has a key: `option` (`--api-key`), `environment` (of the client), `login` (by subscription),
    `auth.json`, `api_key_command` (will be run) or `daemon` (its environment); null: none."""
    stored: bool
    """Whether `auth.json` has a key, even if another source takes precedence."""
    methods: list[str] = []
    """Ways to log in by subscription, for `auth.begin`, the preferred one first; empty: there is none."""
    plan: str = ""
    """The subscription that a login needs."""
    login: LoginInfo | None = None
    """The login by subscription; null: there is none."""
    note: str = ""
    """What the user should know about the command that was just carried out; empty: nothing."""
    own_login: str = ""
    """Where credentials are found instead of a key: `AWS` or `Google Cloud`; empty: nowhere."""
    settings: list[str] = []
    """Other environment variables that its requests depend on, such as a region."""


class KeyList(Frozen, frozen=True):
    """Every vendor of the catalog, in its order."""

    providers: list[KeyInfo]
