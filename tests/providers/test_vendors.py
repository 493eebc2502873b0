"""Requests in the manner of each vendor of the catalog, against a scripted server."""

import json
import os
import sys
from collections.abc import Callable
from typing import cast

import pytest
from aiohttp import web
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.providers.conftest import asking, assembled, broken_off, parts_of, user
from zotd.core.reply import ServerAdvice, Stopped
from zotd.core.retry import Failure, ModelError
from zotd.providers.anthropic import vertex
from zotd.providers.catalog import Catalog
from zotd.providers.catalog.vendors import VENDORS
from zotd.providers.choice import ModelChoice
from zotd.providers.connect import Providers
from zotd.testing import script
from zotd.testing.http_site import listening
from zotd.testing.model_server import ModelServer
from zotd.testing.script import CallPart, Refusal, calls
from zotd.wire.content import Image, Message, Text, ToolCall, ToolResult, visible


@pytest.fixture
async def providers():
    opened = Providers(Catalog.load(None), os.environ)
    yield opened
    await opened.close()


def calls_of(request):
    """The calls of the first reply in a request's history."""
    return cast("list[dict[str, object]]", request.messages[2]["tool_calls"])


def headers_of(request):
    return {name.lower(): value for name, value in request.headers.items()}


def answering(signature=""):
    """A transcript that ends with the result of a call."""
    return (
        user("go"),
        Message("assistant", [ToolCall("c_1", "read", {"path": "a"}, signature=signature)], ""),
        Message("tool", [ToolResult("c_1", is_error=False, content=[Text("done")])], ""),
    )


# --- addresses and keys -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("vendor", "variables", "address"),
    [
        ("azure", {"AZURE_OPENAI_RESOURCE": "house"}, "https://house.openai.azure.com/openai/v1"),
        ("bedrock", {"AWS_REGION": "eu-west-1"}, "https://bedrock-mantle.eu-west-1.api.aws/anthropic"),
        ("bedrock", {"AWS_DEFAULT_REGION": "us-east-2"}, "https://bedrock-mantle.us-east-2.api.aws/anthropic"),
        ("bedrock-openai", {"AWS_REGION": "us-east-1"}, "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1"),
        (
            "vertex",
            {"GOOGLE_CLOUD_PROJECT": "p-1"},
            "https://aiplatform.googleapis.com/v1/projects/p-1/locations/global",
        ),
    ],
)
async def test_an_address_is_made_of_variables(providers, vendor, variables, address):
    choice = ModelChoice(vendor, "m", api_key="k", variables=variables)
    assert providers.connect(choice)._choice.base_url == address
    with pytest.raises(ModelError, match=r"has no address: set .*, or set providers\."):
        providers.connect(ModelChoice(vendor, "m", api_key="k"))


@pytest.mark.parametrize("vendor", ["azure", "bedrock-openai"])
async def test_models_of_openai_elsewhere_are_asked_in_its_newer_api_unless_the_user_says_otherwise(providers, vendor):
    variables = {"AZURE_OPENAI_RESOURCE": "r", "AWS_REGION": "us-east-1"}
    assert [
        providers.connect(ModelChoice(vendor, "m", api_key="k", api=api, variables=variables))._vendor.api
        for api in (None, "chat")
    ] == ["responses", "openai"]


@pytest.mark.parametrize(
    ("vendor", "path", "header", "value"),
    [
        ("google", "/v1/chat/completions", "authorization", "Bearer sk-test"),
        ("azure", "/v1/chat/completions", "api-key", "sk-test"),
        ("bedrock", "/v1/messages", "authorization", "Bearer sk-test"),
        ("bedrock-openai", "/v1/chat/completions", "authorization", "Bearer sk-test"),
        ("copilot", "/v1/chat/completions", "authorization", "Bearer sk-test"),
        ("vllm", "/v1/chat/completions", "authorization", "Bearer sk-test"),
        ("lmstudio", "/v1/chat/completions", "authorization", "Bearer sk-test"),
        ("cerebras", "/v1/chat/completions", "authorization", "Bearer sk-test"),
    ],
)
async def test_a_key_is_sent_in_the_header_of_the_vendor_and_no_other(providers, vendor, path, header, value):
    async with ModelServer([script.text("one"), script.text("two")]) as server:
        model = providers.connect(ModelChoice(vendor, "m", api_key="sk-test", base_url=server.url))
        for words in ("hi", "and again"):
            assert (await parts_of(model, asking(user(words))))[-1] == Stopped("end_turn")
    assert [request.path for request in server.requests] == [path, path]
    for request in server.requests:
        with_key = {name: text for name, text in headers_of(request).items() if "sk-test" in text}
        assert with_key == {header: value}


async def test_the_list_of_models_is_asked_for_with_the_same_key(providers):
    async with ModelServer() as server:
        server.key = "sk-test"
        choice = ModelChoice("bedrock", "", api_key="sk-test", base_url=f"{server.url}/anthropic")
        assert await providers.key_status(choice) == 200


def test_every_vendor_is_complete():
    for vendor in VENDORS:
        assert vendor.label
        assert not (vendor.key_env and vendor.own_login)
        assert not vendor.key_prefix or vendor.key_header
        assert vendor.default_model or vendor.serves_unknown


# --- Gemini -------------------------------------------------------------------------------------------------------------


def gemini(server):
    return ModelChoice("google", "gemini-3.8-flash", api_key="k", base_url=server.openai_url)


async def test_the_signature_of_a_call_is_kept_and_sent_back_unchanged(providers):
    signed = CallPart("read", {"path": "a"}, signature="c2lnbmVk+/=")
    second = CallPart("read", {"path": "b"})
    async with ModelServer([calls(signed, second), script.text("ok")]) as server:
        model = providers.connect(gemini(server))
        reply = (await assembled(model)).message()
        assert [call.signature for call in reply] == ["c2lnbmVk+/=", ""]
        results = [Message("tool", [ToolResult(call.id, is_error=False, content=[Text("x")])], "") for call in reply]
        await parts_of(model, asking(user("go"), Message("assistant", reply, ""), *results))
    sent = calls_of(server.requests[1])
    assert sent[0]["extra_content"] == {"google": {"thought_signature": "c2lnbmVk+/="}}
    assert "extra_content" not in sent[1]


async def test_a_call_of_another_vendor_gets_the_signature_that_is_not_checked(providers):
    async with ModelServer([script.text("ok")]) as server:
        await parts_of(providers.connect(gemini(server)), asking(*answering()))
    (call,) = calls_of(server.requests[0])
    assert call["extra_content"] == {"google": {"thought_signature": "skip_thought_signature_validator"}}


@pytest.mark.parametrize("vendor", ["openai", "anthropic"])
async def test_a_signature_of_gemini_is_not_sent_to_other_vendors(connect, vendor):
    async with ModelServer([script.text("ok")]) as server:
        await parts_of(connect(server, vendor), asking(*answering("secret-thoughts")))
    assert "secret-thoughts" not in json.dumps(server.requests[0].body)


def test_clients_do_not_get_the_signature_of_a_call():
    assert visible([ToolCall("c", "read", {}, signature="signed")]) == [ToolCall("c", "read", {})]


# --- GitHub Copilot -----------------------------------------------------------------------------------------------------


async def test_copilot_is_told_who_asks_and_whether_there_are_images(providers):
    picture = Message("user", [Text("look"), Image("image/png", 3, "AAAA")], "")
    requests = [asking(picture), asking(user("hi")), asking(*answering()), asking(picture)]
    async with ModelServer([script.text("ok") for _ in requests]) as server:
        model = providers.connect(ModelChoice("copilot", "m", api_key="k", base_url=server.openai_url))
        for request in requests:
            await parts_of(model, request)
    heads = [headers_of(request) for request in server.requests]
    assert [head["x-initiator"] for head in heads] == ["user", "user", "agent", "user"]
    assert [head.get("copilot-vision-request") for head in heads] == ["true", None, None, "true"]
    assert {head["editor-version"].partition("/")[0] for head in heads} == {"zot"}


# --- Amazon Bedrock with AWS credentials --------------------------------------------------------------------------------

AWS = {
    "AWS_REGION": "eu-west-1",
    "AWS_ACCESS_KEY_ID": "AKIATEST",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_SESSION_TOKEN": "session",
}


async def test_each_request_to_bedrock_is_signed_anew(providers):
    async with ModelServer([script.text("one"), script.text("two")]) as server:
        model = providers.connect(
            ModelChoice("bedrock-aws", "anthropic.claude-sonnet-5-5", base_url=server.url, variables=AWS)
        )
        for words in ("hi", "something else"):
            assert (await parts_of(model, asking(user(words))))[-1] == Stopped("end_turn")
    heads = [headers_of(request) for request in server.requests]
    for request, head in zip(server.requests, heads, strict=True):
        assert request.path == "/v1/messages"
        assert request.body["model"] == "anthropic.claude-sonnet-5-5"
        assert head["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIATEST/")
        assert "/eu-west-1/bedrock-mantle/aws4_request" in head["authorization"]
        assert head["x-amz-security-token"] == "session"
        assert "x-api-key" not in head
        assert "secret" not in str(head)
    assert heads[0]["authorization"] != heads[1]["authorization"]


async def test_bedrock_without_credentials_says_how_to_log_in(providers, monkeypatch):
    for name in ("AWS_BEARER_TOKEN_BEDROCK", "AWS_PROFILE", "AWS_ACCESS_KEY_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    async with ModelServer() as server:
        for variables in ({"AWS_REGION": "eu-west-1"}, {"AWS_REGION": "eu-west-1", "AWS_PROFILE": "nobody"}):
            choice = ModelChoice("bedrock-aws", "m", base_url=server.url, variables=variables)
            _, error = await broken_off(providers.connect(choice))
            assert error.failure is Failure.NO_KEY
            assert "run aws sso login" in error.sentence
    assert server.requests == []


# --- Vertex AI ----------------------------------------------------------------------------------------------------------


@pytest.fixture
async def google(tmp_path):
    """A service account's file, and the tokens that Google has given for it."""
    given: list[str] = []

    async def token(request):
        await request.post()
        given.append(f"token-{len(given)}")
        # Expires at once, as far as the library is concerned, which wants minutes to spare.
        return web.json_response({"access_token": given[-1], "expires_in": 1, "token_type": "Bearer"})

    app = web.Application()
    app.router.add_post("/token", token)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    url = await listening(runner)
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file = tmp_path / "account.json"
    account = {
        "type": "service_account",
        "client_email": "zot@example.org",
        "private_key_id": "1",
        "private_key": key.decode(),
        "token_uri": f"{url}/token",
    }
    file.write_text(json.dumps(account))
    yield file, given
    await runner.cleanup()


async def test_vertex_gets_a_fresh_token_and_the_model_in_its_url(providers, google, monkeypatch):
    file, given = google
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    variables = {"CLOUD_ML_REGION": "europe-west1"}
    async with ModelServer([script.text("one"), script.text("two")]) as server:
        base_url = f"{server.url}/v1/projects/p-1/locations/europe-west1"
        choice = ModelChoice("vertex", "claude-sonnet-4-5@20250929", base_url=base_url, variables=variables)
        model = providers.connect(choice)
        for words in ("hi", "again"):
            assert (await parts_of(model, asking(user(words))))[-1] == Stopped("end_turn")
    place = "/v1/projects/p-1/locations/europe-west1/publishers/anthropic/models"
    for request in server.requests:
        assert request.path == f"{place}/claude-sonnet-4-5@20250929:streamRawPredict"
        assert "model" not in request.body
        assert request.body["anthropic_version"] == "vertex-2023-10-16"
    assert [headers_of(request)["authorization"] for request in server.requests] == [f"Bearer {one}" for one in given]
    assert len(given) == 2


async def test_vertex_without_credentials_says_how_to_log_in(providers, tmp_path, monkeypatch):
    bad = tmp_path / "account.json"
    bad.write_text("{")
    for file in (bad, tmp_path / "missing.json"):
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
        _, error = await broken_off(providers.connect(ModelChoice("vertex", "m", base_url="http://127.0.0.1:9/v1")))
        assert error.failure is Failure.NO_KEY
        assert "gcloud auth application-default login" in error.sentence


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("global", "aiplatform.googleapis.com"),
        ("us-east5", "us-east5-aiplatform.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
    ],
)
def test_vertex_is_asked_where_the_region_is(region, host):
    url = "https://aiplatform.googleapis.com/v1/projects/p/locations/x"
    assert vertex.regional(url, region) == f"https://{host}/v1/projects/p/locations/x"
    assert vertex.regional("http://127.0.0.1:9/v1", region) == "http://127.0.0.1:9/v1"


# --- packages that are not installed ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("vendor", "package"), [("bedrock-aws", "boto3"), ("vertex", "google")])
async def test_a_vendor_whose_package_is_missing_says_how_to_install_it(providers, vendor, package, monkeypatch):
    for name in [name for name in sys.modules if name == package or name.startswith(f"{package}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModelError, match=r"pip install 'zotd\[") as raised:
        providers.connect(ModelChoice(vendor, "m", base_url="http://127.0.0.1:9"))
    assert raised.value.failure is Failure.UNAVAILABLE


# --- servers of the user ------------------------------------------------------------------------------------------------

PAGES: dict[str, tuple[str, Callable[[int], dict[str, object]]]] = {
    "ollama": ("/api/ps", lambda size: {"models": [{"name": "m:latest", "context_length": size}]}),
    "llamacpp": ("/props", lambda size: {"default_generation_settings": {"n_ctx": size}}),
    "vllm": ("/v1/models", lambda size: {"data": [{"id": "m", "max_model_len": size}]}),
    "lmstudio": ("/api/v0/models", lambda size: {"data": [{"id": "m", "loaded_context_length": size}]}),
}


@pytest.mark.parametrize("vendor", PAGES)
async def test_a_context_in_which_the_tools_do_not_fit_is_told_once_a_run(providers, vendor):
    path, page = PAGES[vendor]
    async with ModelServer([script.text("one"), script.text("two")]) as server:
        server.pages[path] = page(4096)
        model = providers.connect(ModelChoice(vendor, "m", base_url=server.openai_url))
        assert model.context_window == 0
        parts = await parts_of(model)
        (remark,) = [part for part in parts if isinstance(part, ServerAdvice)]
        assert "context of 4,096 tokens" in remark.text
        assert "32768" in remark.text
        assert not any(isinstance(part, ServerAdvice) for part in await parts_of(model))
    next_run = providers.connect(ModelChoice(vendor, "m", base_url=server.openai_url))
    assert next_run.context_window == 4096


@pytest.mark.parametrize("vendor", PAGES)
@pytest.mark.parametrize(
    "page",
    [
        cast("dict[str, object] | None", page)
        for page in ({}, {"models": 5}, {"data": [{"id": "another", "max_model_len": 1}]}, None)
    ],
)
async def test_a_server_that_says_nothing_useful_is_left_alone(providers, vendor, page):
    async with ModelServer([script.text("one")]) as server:
        if page is not None:
            server.pages[PAGES[vendor][0]] = page
        model = providers.connect(ModelChoice(vendor, "m", base_url=server.openai_url))
        assert not any(isinstance(part, ServerAdvice) for part in await parts_of(model))
    assert model.context_window == 0


async def test_a_large_context_is_used_without_a_word(providers):
    async with ModelServer([script.text("one")]) as server:
        server.pages["/api/ps"] = {"models": [{"name": "m", "context_length": 65_536}]}
        model = providers.connect(ModelChoice("ollama", "m", base_url=server.openai_url))
        assert not any(isinstance(part, ServerAdvice) for part in await parts_of(model))
    assert model.context_window == 65_536


async def test_gemini_refuses_a_transcript_without_signatures(providers):
    """What the two tests above prevent, in the words of the vendor."""
    message = "Function call is missing a thought_signature in functionCall parts."
    async with ModelServer([Refusal(400, message)]) as server:
        _, error = await broken_off(providers.connect(gemini(server)))
    assert message.rstrip(".") in error.sentence
