"""What each vendor of the catalog does, cell by cell: data that the tests beside it check and `docs/conformance.md` shows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from zotd.providers.catalog.vendors import VENDORS
from zotd.providers.shared import Vendor

COLUMNS = (
    "stream",
    "tools",
    "parallel tools",
    "images",
    "reasoning carried over a restart",
    "cache figures",
    "refusal",
    "overload",
    "cut at every event",
)


class Credential(StrEnum):
    """What a request shows that it may be made."""

    BEARER = "`Authorization: Bearer`"
    OF_SDK = "key, in the SDK's header"
    API_KEY = "`api-key`"
    SIGV4 = "SigV4"
    GOOGLE = "Google token"
    LOGIN = "login"
    NONE = "none"


class Carried(StrEnum):
    """What goes back to the vendor of a model's reasoning."""

    SIGNED = "signed thinking"
    ENCRYPTED = "encrypted items"
    SIGNATURE = "thought signatures"
    TEXT = "`reasoning_content`"
    THINKING = "`thinking`"
    NOTHING = "none"


UNKNOWN = "its documents name nothing that its Chat Completions take back"
ASKED_FOR = "models differ; `echo_reasoning` in `[providers.NAME]` sends `reasoning_content` back"
DETAILS = "it takes `reasoning_details` back, which zot does not keep"


@dataclass(frozen=True)
class VendorRow:
    """One row of the table."""

    credential: Credential
    carried: Carried
    reason: str = ""
    """Why nothing is carried."""
    model: str = ""
    """The model that is asked; empty: the vendor's default."""
    without: Mapping[str, str] = field(default_factory=dict)
    """Columns of what its API does not have, with the reason."""


def _chat(credential: Credential = Credential.BEARER, reason: str = UNKNOWN, model: str = "") -> VendorRow:
    return VendorRow(credential, Carried.NOTHING, reason, model)


ROWS: Mapping[str, VendorRow] = {
    "anthropic": VendorRow(Credential.OF_SDK, Carried.SIGNED),
    "openai": VendorRow(Credential.BEARER, Carried.ENCRYPTED),
    "moonshot": VendorRow(Credential.BEARER, Carried.TEXT),
    "deepseek": VendorRow(Credential.BEARER, Carried.TEXT),
    "openrouter": _chat(
        reason="the signatures are those of the vendor behind it, which changes from request to request"
    ),
    "groq": _chat(),
    "mistral": _chat(),
    "xai": _chat(),
    "together": _chat(reason=ASKED_FOR),
    "cerebras": _chat(),
    "google": VendorRow(Credential.BEARER, Carried.SIGNATURE),
    "vertex": VendorRow(Credential.GOOGLE, Carried.SIGNED),
    "bedrock": VendorRow(Credential.BEARER, Carried.SIGNED),
    "bedrock-aws": VendorRow(Credential.SIGV4, Carried.SIGNED),
    "bedrock-openai": VendorRow(Credential.BEARER, Carried.ENCRYPTED),
    "azure": VendorRow(Credential.API_KEY, Carried.ENCRYPTED),
    "copilot": _chat(Credential.LOGIN),
    "kimi-code": VendorRow(Credential.LOGIN, Carried.TEXT),
    "chatgpt": VendorRow(Credential.LOGIN, Carried.ENCRYPTED),
    "lmstudio": _chat(Credential.NONE, ASKED_FOR, "m"),
    "vllm": _chat(Credential.NONE, ASKED_FOR, "m"),
    "ollama": VendorRow(
        Credential.NONE,
        Carried.THINKING,
        without={"refusal": "its API has no refusals: a model that declines says so in its text"},
    ),
    "llamacpp": _chat(Credential.NONE, ASKED_FOR),
}
"""By the vendor's name in the catalog."""

EXCEPTED = {"local": "it has no address: its server is a child of the daemon (`tests/providers/test_local.py`)"}

APIS = {
    "anthropic": "Messages",
    "bedrock": "Messages",
    "vertex": "Messages",
    "ollama": "Ollama",
    "openai": "Chat Completions",
    "responses": "Responses",
}
"""By `Vendor.api`."""

CACHE = {"Messages": "read, written", "Chat Completions": "read", "Ollama": "read", "Responses": "read, written"}
"""Figures that the scripted server sends in that API."""


def vendors() -> list[Vendor]:
    """The rows of the catalog that have cells."""
    return [vendor for vendor in VENDORS if vendor.name not in EXCEPTED]


def vendors_with(column: str) -> list[Vendor]:
    """The rows whose API has what the column tests."""
    return [vendor for vendor in vendors() if column not in ROWS[vendor.name].without]


def cell(vendor: Vendor, column: str) -> str:
    """Return what the page shows."""
    row = ROWS[vendor.name]
    if column in row.without:
        return "none"
    match column:
        case "reasoning carried over a restart":
            return row.carried.value
        case "cache figures":
            return CACHE[APIS[vendor.api]]
        case _:
            return "yes"


def markdown() -> Iterator[str]:
    """The lines of the page's generated part."""
    yield f"| vendor | API | credential | {' | '.join(COLUMNS)} |"
    yield "|---" * (3 + len(COLUMNS)) + "|"
    for vendor in vendors():
        cells = " | ".join(cell(vendor, column) for column in COLUMNS)
        yield f"| `{vendor.name}` | {APIS[vendor.api]} | {ROWS[vendor.name].credential} | {cells} |"
    yield "\nNo reasoning is sent back to these vendors, which the tests check, too:\n"
    for vendor in vendors():
        if reason := ROWS[vendor.name].reason:
            yield f"- `{vendor.name}`: {reason}."
    yield "\nWhat the API of a vendor does not have:\n"
    for vendor in vendors():
        yield from (f"- `{vendor.name}`: {reason}." for reason in ROWS[vendor.name].without.values())
    yield "\nWithout cells:\n"
    for name, reason in EXCEPTED.items():
        yield f"- `{name}`: {reason}."
