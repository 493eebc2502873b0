"""The vendors whose subscriptions other programs can use, as data.

The client ids are public: they are in the vendors' own open-source programs. Requests name this program truthfully, as
`zot`; a vendor can refuse it at any time, and then an API key is left.
"""

from collections.abc import Mapping

import msgspec

from zotd.logins.chatgpt import ChatGptDevice
from zotd.oauth.device import DeviceDialect, Rfc8628
from zotd.oauth.protocol import OAuthClient, moved
from zotd.wire.version import VERSION

AGENT = f"zot/{VERSION}"


class KeyExchange(msgspec.Struct, frozen=True, kw_only=True):
    """A short-lived token for requests, in exchange for the granted one."""

    url: str
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    url_domain: str = ""
    """The answer may name a base URL of this domain; any other is ignored."""


class LoginVendor(msgspec.Struct, frozen=True, kw_only=True):
    """How to log in to one vendor, and what its requests then carry."""

    name: str
    """Its name in the catalog."""
    plan: str
    """What the user needs there, for lists."""
    client: OAuthClient
    device: DeviceDialect = Rfc8628()
    exchange: KeyExchange | None = None
    account_claims: tuple[str, ...] = ()
    """Where a token names its user: claims, the first that is there wins. With a space: one inside of another."""
    account_id_claims: tuple[str, ...] = ()
    account_url: str = ""
    """Where the server tells the user's name, in `login`; empty: nowhere."""
    account_header: str = ""
    """The header of requests with the account's id."""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    """Further headers of requests."""

    @property
    def methods(self) -> tuple[str, ...]:
        """The ways to log in, the preferred one first."""
        ways = (("browser", self.client.authorize_url), ("device", self.client.device_url))
        return tuple(name for name, url in ways if url)

    def at(self, origin: str | None, client_id: str | None) -> "LoginVendor":
        """Return the same vendor at another server and with another client id; None: as it is."""
        client = msgspec.structs.replace(self.client, client_id=client_id) if client_id else self.client
        if not origin:
            return msgspec.structs.replace(self, client=client)
        exchange = self.exchange
        if exchange is not None:
            exchange = msgspec.structs.replace(exchange, url=moved(exchange.url, origin))
        url = moved(self.account_url, origin)
        return msgspec.structs.replace(self, client=client.at(origin), exchange=exchange, account_url=url)


_OPENAI_CLAIMS = "https://api.openai.com/auth"

CHATGPT = LoginVendor(
    name="chatgpt",
    plan="ChatGPT Plus, Pro, Business or Enterprise",
    client=OAuthClient(
        client_id="app_EMoamEEZ73f0CkXaXp7hrann",  # Codex's
        authorize_url="https://auth.openai.com/oauth/authorize",
        token_url="https://auth.openai.com/oauth/token",  # noqa: S106
        device_url="https://auth.openai.com/api/accounts/deviceauth/usercode",
        revoke_url="https://auth.openai.com/oauth/revoke",
        scope="openid profile email offline_access",
        redirect_host="localhost",
        redirect_ports=(1455, 1457),  # the two that the client id is registered with
        redirect_path="/auth/callback",
        authorize_params={
            "id_token_add_organizations": "true",
            "codex_cli_simplified_flow": "true",
            "originator": "zot",
        },
        headers={"User-Agent": AGENT},
    ),
    device=ChatGptDevice(),
    account_claims=("email",),
    account_id_claims=(f"{_OPENAI_CLAIMS} chatgpt_account_id", "chatgpt_account_id"),
    account_header="ChatGPT-Account-Id",
    headers={"originator": "zot", "User-Agent": AGENT},
)

COPILOT = LoginVendor(
    name="copilot",
    plan="GitHub Copilot",
    client=OAuthClient(
        client_id="Iv1.b507a08c87ecfe98",  # GitHub's own plugin for editors
        token_url="https://github.com/login/oauth/access_token",  # noqa: S106
        device_url="https://github.com/login/device/code",
        scope="read:user",
        headers={"User-Agent": AGENT},
    ),
    exchange=KeyExchange(
        url="https://api.github.com/copilot_internal/v2/token",
        headers={"User-Agent": AGENT, "Editor-Version": AGENT},
        url_domain="githubcopilot.com",
    ),
    account_url="https://api.github.com/user",
    headers={
        "User-Agent": AGENT,
        "Editor-Version": AGENT,  # requests without one are refused
        "Openai-Intent": "conversation-edits",
    },
)

KIMI_CODE = LoginVendor(
    name="kimi-code",
    plan="Kimi Code",
    client=OAuthClient(
        client_id="17e5f671-d194-4dfb-9706-5516cb48c098",  # Kimi CLI's
        token_url="https://auth.kimi.com/api/oauth/token",  # noqa: S106
        device_url="https://auth.kimi.com/api/oauth/device_authorization",
        headers={"User-Agent": AGENT, "X-Msh-Platform": "zot", "X-Msh-Version": VERSION},
    ),
    headers={"User-Agent": AGENT, "X-Msh-Platform": "zot", "X-Msh-Version": VERSION},
)

LOGINS: Mapping[str, LoginVendor] = {vendor.name: vendor for vendor in (CHATGPT, COPILOT, KIMI_CODE)}
"""By the vendor's name in the catalog."""
