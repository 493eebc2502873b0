"""Refusals in the words of each vendor, and what the user is told to do."""

import json

import pytest

from zotd.core.retry import Failure
from zotd.providers.catalog import Catalog
from zotd.providers.shared import Target
from zotd.providers.shared.failures import answered, reported

CATALOG = Catalog.load(None)


def target(vendor):
    found = CATALOG.by_name[vendor]
    return Target(found, "https://llm.example/v1", CATALOG.assumed(vendor, "a-model"))


def google(code, status, message, *details):
    return [{"error": {"code": code, "message": message, "status": status, "details": list(details)}}]


def openai(message, code=None, **further):
    return {"error": {"message": message, "type": "invalid_request_error", "code": code, **further}}


def anthropic(kind, message):
    return {"type": "error", "error": {"type": kind, "message": message}}


EMPTY = "You exceeded your current quota, please check your plan and billing details."

REFUSED = {
    # A wrong key.
    "anthropic key": (
        "anthropic",
        401,
        anthropic("authentication_error", "invalid x-api-key"),
        "auth",
        "check the API key",
    ),
    "openai key": (
        "openai",
        401,
        openai("Incorrect API key provided", "invalid_api_key"),
        "auth",
        "set OPENAI_API_KEY",
    ),
    "google key": (
        *("google", 400),
        google(400, "INVALID_ARGUMENT", "API key not valid.", {"reason": "API_KEY_INVALID"}),
        *("auth", "check the API key: set GEMINI_API_KEY"),
    ),
    "azure key": (
        *("azure", 401, {"error": {"code": "401", "message": "Access denied due to invalid subscription key"}}),
        *("auth", "set AZURE_OPENAI_API_KEY"),
    ),
    "bedrock key": (
        *("bedrock-aws", 403, {"message": "The security token included in the request is invalid."}),
        *("auth", "aws sso login"),
    ),
    # An expired login.
    "expired aws": (
        "bedrock-aws",
        403,
        {"__type": "ExpiredTokenException", "Message": "expired"},
        "auth",
        "aws sso login",
    ),
    "expired google": (
        *("vertex", 401, google(401, "UNAUTHENTICATED", "Request had invalid credentials: token has expired")),
        *("auth", "the login has expired: run gcloud auth application-default login"),
    ),
    "expired copilot": (
        *("copilot", 401, b"IDE token expired: unauthorized: token expired\n"),
        *("auth", "the login has expired: set GITHUB_COPILOT_TOKEN"),
    ),
    # A clock that is wrong.
    "aws clock": (
        *("bedrock-aws", 403),
        {"message": "Signature expired: 20261121T100000Z is now earlier than 20261121T110000Z"},
        *("auth", "the clock of this machine is wrong"),
    ),
    "aws clock ahead": (
        *("bedrock-aws", 403, {"message": "Signature not yet current: 20261121T120000Z"}),
        *("auth", "timedatectl"),
    ),
    # No credit.
    "openai credit": ("openai", 429, openai(EMPTY, "insufficient_quota"), "quota", "has no credit"),
    "anthropic credit": (
        *("anthropic", 400, anthropic("invalid_request_error", "Your credit balance is too low to access the API.")),
        *("quota", "add some at Anthropic"),
    ),
    "deepseek credit": ("deepseek", 402, openai("Insufficient Balance"), "quota", "has no credit"),
    "copilot credit": (
        "copilot",
        402,
        openai("You have exceeded your premium request allowance"),
        "quota",
        "no credit",
    ),
    # An unknown model.
    "openai model": (
        "openai",
        404,
        openai("The model `x` does not exist", "model_not_found"),
        "no_model",
        "check the model's",
    ),
    "azure deployment": (
        *("azure", 404),
        {"error": {"code": "DeploymentNotFound", "message": "The API deployment for this resource does not exist."}},
        *("no_model", "zotctl models list --provider azure --all"),
    ),
    "google model": (
        *("google", 404),
        google(404, "NOT_FOUND", "models/x is not found for API version v1main"),
        *("no_model", "check the model's name"),
    ),
    "bedrock model": (
        "bedrock",
        400,
        {"message": "The provided model identifier is invalid."},
        "no_model",
        "model's name",
    ),
    "mantle route": ("bedrock-openai", 400, openai("model `x` isn't supported on this route"), "no_model", "base URL"),
    "anthropic model": (
        "anthropic",
        404,
        anthropic("not_found_error", "model: nope"),
        "no_model",
        "check the model's name",
    ),
    "litellm key": (
        *("openai", 400),
        {"error": {"message": "No connected db.", "type": "no_db_connection", "param": None, "code": "400"}},
        *("auth", "check the API key"),
    ),
    "llama.cpp image": (
        *("llamacpp", 500),
        {"error": {"code": 500, "message": "image input is not supported - hint: …", "type": "server_error"}},
        *("refused", "a-model takes no images"),
    ),
    "ollama model": (*("ollama", 404, {"error": "model 'x' not found"}), *("no_model", "ollama pull a-model")),
    "older ollama model": (
        *("ollama", 404, openai('model "x" not found, try pulling it first')),
        *("no_model", "ollama pull a-model"),
    ),
    "ollama memory": (
        *("ollama", 500, {"error": "model requires more system memory (9 GiB) than is available (5 GiB)"}),
        *("refused", "set a smaller context_window for a-model"),
    ),
    # A model that the account may not use.
    "bedrock access": (
        *("bedrock", 403, {"message": "You don't have access to the model with the specified model ID."}),
        *("no_model", "have it enabled"),
    ),
    "copilot access": (
        "copilot",
        400,
        openai("The requested model is not supported.", "model_not_supported"),
        "no_model",
        "enabled",
    ),
    # A prompt that is too long.
    "anthropic long": (
        *("anthropic", 400, anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum")),
        *("context", "the conversation is too long for a-model"),
    ),
    "openai long": (
        "openai",
        400,
        openai("This model's maximum context length is 8 tokens", "context_length_exceeded"),
        "context",
        "compact it",
    ),
    "google long": (
        *("google", 400),
        google(400, "INVALID_ARGUMENT", "The input token count (9) exceeds the maximum number of tokens allowed (8)."),
        *("context", "compact it"),
    ),
    "bedrock long": ("bedrock", 400, {"message": "Input is too long for requested model."}, "context", "compact it"),
    "copilot long": (
        "copilot",
        400,
        openai("prompt token count of 9 exceeds the limit of 8", "model_max_prompt_tokens_exceeded"),
        "context",
        "compact it",
    ),
    # A content filter.
    "azure filter": (
        *("azure", 400),
        openai("The response was filtered", "content_filter", innererror={"code": "ResponsibleAIPolicyViolation"}),
        *("refused", "its content filter objects"),
    ),
    "google filter": (
        "google",
        400,
        google(400, "INVALID_ARGUMENT", "Blocked: PROHIBITED_CONTENT"),
        "refused",
        "content filter",
    ),
    # A region.
    "openai region": (
        *("openai", 403, openai("Country, region, or territory not supported", "unsupported_country_region_territory")),
        *("no_model", "OpenAI does not serve this country or region"),
    ),
    "google region": (
        *("google", 400),
        google(400, "FAILED_PRECONDITION", "User location is not supported for the API use."),
        *("no_model", "use another region or another vendor"),
    ),
}


def error_of(vendor, status, body, headers=None):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return answered(target(vendor), status, headers or {}, data)


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_says_what_to_do(case):
    vendor, status, body, failure, words = REFUSED[case]
    error = error_of(vendor, status, body)
    assert error.failure is Failure(failure)
    assert words in error.sentence
    assert "\n" not in error.sentence
    assert str(status) in error.sentence


def test_a_rate_limit_of_gemini_waits_as_long_as_its_details_say():
    details = ({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"},)
    error = error_of("google", 429, google(429, "RESOURCE_EXHAUSTED", EMPTY, *details))
    assert (error.failure, error.retry_after_s) == (Failure.RATE_LIMIT, 34.5)


def test_a_filtered_conversation_can_go_on_without_what_was_refused():
    vendor, status, body, *_ = REFUSED["azure filter"]
    assert error_of(vendor, status, body).refuses_content


@pytest.mark.parametrize("status", [200 + 103, 403, 404])
def test_a_web_page_in_place_of_an_answer_is_named_and_is_not_blamed_on_the_key(status):
    page = b"<!doctype html><html><head><title>Sign in to the\n Wi-Fi</title></head></html>"
    error = error_of("openai", status, page)
    assert error.failure is Failure.WRONG_SERVER
    assert "https://llm.example/v1 answered" in error.sentence
    assert "Sign in to the Wi-Fi" in error.sentence
    assert "API key" not in error.sentence


def test_only_a_refused_key_or_token_is_replaced_by_another():
    for name in ("anthropic key", "expired copilot", "azure key"):
        vendor, status, body, *_ = REFUSED[name]
        assert error_of(vendor, status, body).refuses_key
    for name in ("google key", "openai region", "aws clock"):
        vendor, status, body, *_ = REFUSED[name]
        assert not error_of(vendor, status, body).refuses_key


def test_a_web_page_of_a_server_in_trouble_is_an_outage():
    error = error_of("openai", 502, b"<html><title>Bad gateway</title></html>")
    assert error.failure is Failure.SERVER


def test_the_kind_of_an_error_of_aws_may_be_in_a_header():
    error = error_of("bedrock-aws", 400, {"message": "no"}, {"x-amzn-errortype": "ExpiredTokenException"})
    assert "the login has expired" in error.sentence


@pytest.mark.parametrize("body", [b"", b"[]", b"[1]", b"3", b'"x"', b"{}", b'{"error": 3}', b"\xff\xfe", b"{nonsense"])
def test_a_body_that_is_no_error_is_left_out(body):
    error = error_of("openai", 400, body)
    assert error.sentence.startswith("OpenAI answered 400; the request has to change")


def test_an_error_inside_a_stream_is_told_in_the_same_words():
    error = reported(target("google"), {"code": 400, "message": "API key expired. Please renew the API key."})
    assert error.failure is Failure.AUTH
    assert "the login has expired: set GEMINI_API_KEY" in error.sentence
