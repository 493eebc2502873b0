"""Sessions with each vendor's own row of the catalog: only the host is another one, the scripted server's."""

import json
import time
from contextlib import AsyncExitStack
from datetime import datetime
from types import SimpleNamespace

import pytest
from aiohttp import web
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.providers.conformance.table import ROWS, Credential, vendors
from tests.testing.shapes import checked_dialects
from zotd.embed.session_runtime import Runtime
from zotd.logins.vendors import LOGINS
from zotd.testing.http_site import listening
from zotd.testing.live_daemon import place as place_in
from zotd.testing.model_server import ModelServer

KEY = "sk-conformance"
TOKEN = "token-conformance"

AWS = {"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIATEST", "AWS_SECRET_ACCESS_KEY": "very-secret"}

VARIABLES = {**AWS, "AZURE_OPENAI_RESOURCE": "house", "GOOGLE_CLOUD_PROJECT": "p-1", "CLOUD_ML_REGION": "europe-west1"}
"""What the placeholders of base URLs are filled with."""

HOSTS = {
    "bedrock": "/bedrock-mantle.eu-west-1.api.aws/anthropic/v1/messages",
    "bedrock-aws": "/bedrock-mantle.eu-west-1.api.aws/anthropic/v1/messages",
    "bedrock-openai": "/bedrock-runtime.eu-west-1.amazonaws.com/openai/v1/responses",
    "azure": "/house.openai.azure.com/openai/v1/responses",
    "vertex": "/aiplatform.googleapis.com/v1/projects/p-1/locations/europe-west1/publishers/anthropic/models/"
    "claude-sonnet-5-5:streamRawPredict",
}
"""Where requests go whose address has variables."""

ENDS = {"anthropic": "/v1/messages", "ollama": "/api/chat", "openai": "/chat/completions", "responses": "/responses"}
"""What the API adds to a base URL, by `Vendor.api`."""

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(30)


def moved(vendor, server):
    """The vendor's own base URL, with its host as the first part of the path: so a request shows which row it is from."""
    _, _, place = vendor.base_url.partition("://")
    return f"{server.url}/{place}"


def path_of(vendor):
    """The path of the vendor's requests on the scripted server."""
    return HOSTS.get(vendor.name) or f"/{vendor.base_url.partition('://')[2]}{ENDS[vendor.api]}"


def configuration(server, rows):
    """`config.toml` with these vendors at the scripted server."""
    lines = ["[limits]", "retry_pause_s = 0.001"]
    for vendor in rows:
        lines += [f"[providers.{vendor.name}]", f'base_url = "{moved(vendor, server)}"']
        lines += ['api = "responses"'] if vendor.api == "responses" else []
    return "\n".join(lines) + "\n"


def log_in(home):
    """Logins by subscription, as `zotctl login` leaves them, with tokens that are valid for an hour."""
    tokens = {"access_token": TOKEN, "refresh_token": "r", "obtained_at": time.time(), "expires_at": time.time() + 3600}
    stored = {
        name: {
            "account": "octocat",
            "account_id": "acc-1",
            "tokens": tokens,
            **({"key": tokens} if one.exchange else {}),
        }
        for name, one in LOGINS.items()
    }
    (home / "logins.json").write_text(json.dumps(stored))
    (home / "logins.json").chmod(0o600)


def keys():
    return {
        name: KEY
        for vendor in vendors()
        if ROWS[vendor.name].credential is not Credential.LOGIN
        for name in vendor.key_env
    }


def furnish(home, server, rows):
    """A home whose vendors are the scripted server."""
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.toml").write_text(configuration(server, rows))
    log_in(home)


def model_of(vendor):
    return ROWS[vendor.name].model or vendor.default_model


def headers_of(received):
    return {name.lower(): value for name, value in received.headers.items()}


def assert_authorized(vendor, received):
    """The request came to the vendor's place, with its credential and no other."""
    head, credential = headers_of(received), ROWS[vendor.name].credential
    assert received.path == path_of(vendor)
    secret = {name: value for name, value in head.items() if KEY in value or TOKEN in value}
    match credential:
        case Credential.BEARER:
            assert secret == {"authorization": f"Bearer {KEY}"}
        case Credential.OF_SDK:
            assert secret in ({"authorization": f"Bearer {KEY}"}, {"x-api-key": KEY})
        case Credential.API_KEY:
            assert secret == {"api-key": KEY}
        case Credential.GOOGLE | Credential.LOGIN:
            assert secret == {"authorization": f"Bearer {TOKEN}"}
        case Credential.SIGV4:
            assert secret == {}
            assert signature(received, head) == head["authorization"].rpartition("Signature=")[2]
        case Credential.NONE:
            assert secret == {}


def signature(received, head):
    """The signature that AWS computes for the request as it came."""
    fields = dict(one.strip().split("=", 1) for one in head["authorization"].partition(" ")[2].split(","))
    signed = {name: head[name] for name in fields["SignedHeaders"].split(";")}
    request = AWSRequest("POST", f"http://{head['host']}{received.path}", headers=signed, data=received.data)
    request.context["timestamp"] = head["x-amz-date"]
    assert abs(time.time() - datetime.strptime(f"{head['x-amz-date']}+0000", "%Y%m%dT%H%M%SZ%z").timestamp()) < 60
    _, _, region, service, _ = fields["Credential"].split("/")
    assert (region, service) == ("eu-west-1", "bedrock-mantle")
    signer = SigV4Auth(Credentials(AWS["AWS_ACCESS_KEY_ID"], AWS["AWS_SECRET_ACCESS_KEY"]), service, region)
    return signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)


def of(shown, kind):
    """The events of that type."""
    return [event for event in shown if type(event) is kind]


def parts(received):
    """The messages of a request, or its items, each followed by the blocks in it."""
    for message in received.messages:
        yield message
        if isinstance(message.get("content"), list):
            yield from message["content"]


def results(received):
    """The results of calls in a request, in order, each with the id of its call, in any API."""
    found = []
    for part in parts(received):
        if part.get("role") == "tool":
            found.append((part["tool_call_id"], part["content"]))
        elif part.get("type") == "function_call_output":
            found.append((part["call_id"], part["output"]))
        elif part.get("type") == "tool_result":
            found.append((part["tool_use_id"], part["content"]))
    return [(call, json.dumps(result)) for call, result in found]


def called(received):
    """The ids of the calls in a request, in order, in any API."""
    found = []
    for part in parts(received):
        found += [call["id"] for call in part.get("tool_calls") or ()]
        found += [
            part[name] for kind, name in (("function_call", "call_id"), ("tool_use", "id")) if part.get("type") == kind
        ]
    return found


def is_answered(received):
    """Whether the request ends with the result of a call."""
    last = received.messages[-1]
    blocks = last["content"] if isinstance(last.get("content"), list) else []
    kinds = {last.get("role"), last.get("type"), *(block.get("type") for block in blocks)}
    return bool(kinds & {"tool", "function_call_output", "tool_result"})


@pytest.fixture(scope="session")
def account_key():
    """The private key of a service account; to make one takes a while."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


@pytest.fixture
async def google(tmp_path, account_key):
    """The file of a service account for which a server of Google gives tokens."""

    async def token(request):
        await request.read()
        return web.json_response({"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"})

    app = web.Application()
    app.router.add_post("/token", token)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    url = await listening(runner)
    account = {
        "type": "service_account",
        "client_email": "zot@example.org",
        "private_key_id": "1",
        "private_key": account_key,
        "token_uri": f"{url}/token",
    }
    file = tmp_path / "account.json"
    file.write_text(json.dumps(account))
    yield str(file)
    await runner.cleanup()


@pytest.fixture
async def serve():
    """`await serve(script)`: a scripted server all of whose answers are checked against the SDKs' types."""
    wrong: list[str] = []
    async with AsyncExitStack() as stack:

        async def serve(script):
            return await stack.enter_async_context(ModelServer(script, dialects=checked_dialects(wrong)))

        yield serve
    assert wrong == []


@pytest.fixture
async def begin(tmp_path, serve, google, monkeypatch):
    """`await begin(vendor, script)`: a session with the vendor, and the server that it talks to."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", google)  # Google's library looks there, and nowhere else
    async with AsyncExitStack() as stack:

        async def begin(vendor, script, patience_s=30):
            place = place_in(tmp_path, {"ZOT_LIMITS_RETRY_PATIENCE_S": str(patience_s)})
            server = await serve(script)
            furnish(place.home, server, [vendor])
            (place.cwd / "a.txt").write_text("walrus\n")
            (place.cwd / "b.txt").write_text("narwhal\n")
            (place.cwd / "a.png").write_bytes(PICTURE)
            env = {**place.env, **VARIABLES, **keys()}
            options = {"cwd": str(place.cwd), "provider": vendor.name, "model": model_of(vendor)}
            runtime = await stack.enter_async_context(Runtime.open(options, env=env))
            return SimpleNamespace(runtime=runtime, server=server, cwd=place.cwd)

        yield begin


async def run(session, words="go", images=()):
    """Everything that comes of a prompt."""
    return [event async for event in session.runtime.prompt(words, images)]
