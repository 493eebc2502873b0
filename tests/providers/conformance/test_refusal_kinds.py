"""What vendors refuse, each kind in each API: one sentence that says what to do, and the session goes on."""

import pytest

from tests.providers.conformance.conftest import of, run
from zotd.providers.catalog.vendors import VENDORS
from zotd.testing.script import Refusal, text
from zotd.wire import events

BY_NAME = {vendor.name: vendor for vendor in VENDORS}

PAGE = "<!doctype html><html><head><title>Log in to the guest network</title></head></html>"

# The vendor that is asked, what it answers, and what the user is told to do. Only AWS looks at the clock of the machine.
KINDS: dict[str, dict[str, tuple[str, Refusal, str]]] = {
    "a wrong key": {
        "Messages": ("anthropic", Refusal(401, "invalid x-api-key"), "check the API key: set ANTHROPIC_API_KEY"),
        "Chat Completions": ("groq", Refusal(401, "Invalid API Key", "invalid_api_key"), "set GROQ_API_KEY"),
        "Responses": ("openai", Refusal(401, "Incorrect API key provided", "invalid_api_key"), "set OPENAI_API_KEY"),
    },
    "no quota": {
        "Messages": ("anthropic", Refusal(400, "Your credit balance is too low to access the API."), "credit"),
        "Chat Completions": ("deepseek", Refusal(402, "Insufficient Balance"), "credit"),
        "Responses": (
            "openai",
            Refusal(429, "You exceeded your current quota, please check your plan.", "insufficient_quota"),
            "credit",
        ),
    },
    "an unknown model": {
        "Messages": ("anthropic", Refusal(404, "model: nope", "not_found_error"), "check the model's name"),
        "Chat Completions": (
            "groq",
            Refusal(404, "The model `x` does not exist", "model_not_found"),
            "zotctl models list",
        ),
        "Responses": (
            "openai",
            Refusal(400, "The requested model 'x' does not exist.", "model_not_found"),
            "zotctl models list",
        ),
    },
    "an overlong prompt": {
        "Messages": ("anthropic", Refusal(400, "prompt is too long: 210000 tokens > 200000 maximum"), "is too long"),
        "Chat Completions": (
            "groq",
            Refusal(400, "Please reduce the length of the messages", "context_length_exceeded"),
            "is too long",
        ),
        "Responses": (
            "openai",
            Refusal(400, "Your input exceeds the context window of this model.", "context_length_exceeded"),
            "is too long",
        ),
    },
    "a content filter": {
        "Messages": ("anthropic", Refusal(400, "Output blocked by content filtering policy"), "rephrase it"),
        "Chat Completions": ("groq", Refusal(400, "The response was filtered", "content_filter"), "rephrase it"),
        "Responses": (
            "openai",
            Refusal(400, "Invalid prompt: flagged as potentially violating our usage policy.", "invalid_prompt"),
            "rephrase it",
        ),
    },
    "a region": {
        "Messages": ("anthropic", Refusal(403, "Request not allowed", "permission_error"), "use another region"),
        "Chat Completions": (
            "google",
            Refusal(400, "User location is not supported for the API use.", "FAILED_PRECONDITION"),
            "use another region",
        ),
        "Responses": (
            "openai",
            Refusal(403, "Country, region, or territory not supported", "unsupported_country_region_territory"),
            "use another region",
        ),
    },
    "an expired token": {
        "Messages": (
            "bedrock-aws",
            Refusal(403, "The security token included in the request is expired"),
            "aws sso login",
        ),
        "Chat Completions": (
            "google",
            Refusal(400, "API key expired. Please renew the API key."),
            "has expired: set GEMINI",
        ),
        "Responses": ("openai", Refusal(401, "Provided token is expired.", "token_expired"), "the login has expired"),
    },
    "a skewed clock": {
        "Messages": (
            "bedrock-aws",
            Refusal(403, "Signature expired: 20261121T100000Z is now earlier than 20261121T110000Z"),
            "timedatectl",
        ),
    },
    "a web page": {
        "Messages": ("anthropic", Refusal(403, page=PAGE), "check the network, the proxy and --base-url"),
        "Chat Completions": ("groq", Refusal(403, page=PAGE), "check the network, the proxy and --base-url"),
        "Responses": ("openai", Refusal(403, page=PAGE), "check the network, the proxy and --base-url"),
    },
}


@pytest.mark.parametrize(("kind", "api"), [(kind, api) for kind, cases in KINDS.items() for api in cases])
async def test_a_refusal_names_the_vendor_what_failed_and_what_to_do(begin, kind, api):
    name, refusal, advice = KINDS[kind][api]
    vendor = BY_NAME[name]
    # A prompt that is too long is summarised and sent again; here the summary is refused, too.
    answers = [refusal] * (2 if kind == "an overlong prompt" else 1)
    session = await begin(vendor, lambda _: answers.pop() if answers else text("fine"))
    (error,) = of(await run(session), events.Error)
    assert vendor.title in error.message
    assert str(refusal.status) in error.message
    assert (refusal.message.rstrip(".") if not refusal.page else "Log in to the guest network") in error.message
    assert advice in error.message
    assert "\n" not in error.message
    assert not of(await run(session, "and now?"), events.Error)
