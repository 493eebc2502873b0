"""Choosing a model, and what all sessions share."""

import asyncio
import gc
import shutil
import subprocess
import sys
import threading
import weakref

import pytest
import trustme

from tests.providers.conftest import DIALECTS, asking, chosen, parts_of, user
from zotd.core.reply import Stopped
from zotd.core.retry import Failure, ModelError
from zotd.providers import connect
from zotd.providers.choice import ModelChoice
from zotd.providers.shared import Destination, http
from zotd.testing import script
from zotd.testing.model_server import ModelServer
from zotd.wire.content import Tokens


@pytest.mark.parametrize(
    ("choice", "failure", "words"),
    [
        (ModelChoice("anthropic", "claude-sonnet-5-5"), Failure.NO_KEY, "set ANTHROPIC_API_KEY, pass --api-key"),
        (ModelChoice("kimi", "kimi-k3", api_key="  "), Failure.NO_KEY, "MOONSHOT_API_KEY"),
        (ModelChoice("anthropic", "m", api_key="sk-\N{EN DASH}"), Failure.AUTH, "copy it again"),
        (ModelChoice("anthropic", "m", api_key="sk-\nx"), Failure.AUTH, "copy it again"),
        (ModelChoice("nobody", "m"), Failure.REFUSED, "choose one of anthropic, openai"),
        (ModelChoice("openai", ""), Failure.REFUSED, "--model"),
        (ModelChoice("openai", "m", base_url="localhost:8080"), Failure.REFUSED, "https://"),
        (ModelChoice("openai", "m", base_url="http://[::1"), Failure.REFUSED, "https://"),
        (ModelChoice("openai", "m", base_url="http://"), Failure.REFUSED, "https://"),
    ],
)
def test_a_choice_that_cannot_work_says_so_at_once(providers, choice, failure, words):
    with pytest.raises(ModelError) as raised:
        providers.connect(choice)
    assert raised.value.failure is failure
    assert words in raised.value.sentence


def test_a_key_is_not_shown():
    assert "sk-secret" not in repr(ModelChoice("openai", "m", api_key="sk-secret"))


@pytest.mark.parametrize("vendor", [*DIALECTS, "ollama"])
async def test_a_server_of_ones_own_needs_no_key(providers, vendor):
    async with ModelServer([script.text("ok")]) as server:
        model = providers.connect(chosen(vendor, "m", base_url=server.url))
        assert (await parts_of(model))[-1] == Stopped("end_turn")


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("", "/v1/chat/completions"),
        ("/", "/v1/chat/completions"),
        ("/v1", "/v1/chat/completions"),
        ("/v1/", "/v1/chat/completions"),
        ("/openai", "/openai/chat/completions"),
    ],
)
async def test_a_base_url_without_a_path_means_the_one_that_servers_of_this_dialect_have(providers, path, asked):
    async with ModelServer([script.text("ok")]) as server:
        await parts_of(providers.connect(ModelChoice("openai", "m", base_url=server.url + path)))
    assert [request.path for request in server.requests] == [asked]


@pytest.mark.parametrize("vendor", DIALECTS)
async def test_requests_to_this_machine_use_no_proxy(connect, vendor, monkeypatch):
    for name in ("HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    async with ModelServer([script.text("ok")]) as server:
        assert (await parts_of(connect(server, vendor)))[-1] == Stopped("end_turn")


@pytest.mark.parametrize("vendor", DIALECTS)
async def test_the_runs_of_many_sessions_share_connections(connect, vendor, raw):
    done = {
        "anthropic": b'data: {"type":"message_stop"}\n\n',
        "ollama": b'{"message":{},"done":true}\n',
        "openai": b'data: {"choices":[{"finish_reason":"stop"}]}\n\n',
        "responses": b'data: {"type":"response.completed","response":{}}\n\n',
    }
    async with raw(done[vendor]) as server:
        for _ in range(5):
            await parts_of(connect(server, vendor))
    assert len(server.peers) == 1


async def test_sessions_that_start_together_are_served_together(connect):
    async with ModelServer([script.text(str(n)) for n in range(20)]) as server, asyncio.TaskGroup() as tasks:
        runs = [tasks.create_task(parts_of(connect(server, "openai"), asking(user(str(n))))) for n in range(20)]
    assert all(run.result()[-1] == Stopped("end_turn") for run in runs)


async def test_a_model_knows_its_price_and_its_window(providers):
    model = providers.connect(ModelChoice("anthropic", "claude-sonnet-4-5", api_key="k"))
    assert model.context_window == 200_000
    assert model.price(Tokens(1000, 10)).cost_usd > 0


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(connect, "LOAD_DELAY_S", 0)


async def warmed(providers, vendor):
    """Warm a vendor and wait for the thread that does it."""
    before = set(threading.enumerate())
    providers.warm(vendor)
    for _ in range(2):  # the timer has no delay here
        await asyncio.sleep(0)
    for thread in set(threading.enumerate()) - before:
        await asyncio.to_thread(thread.join, 20)


async def test_warming_an_unknown_provider_does_nothing(providers):
    before = threading.enumerate()
    await warmed(providers, "nobody")
    assert threading.enumerate() == before


@pytest.mark.parametrize("vendor", DIALECTS)
async def test_a_client_is_made_at_once_when_its_sdk_is_loaded(providers, vendor, monkeypatch):
    await warmed(providers, "deepseek" if vendor == "openai" else chosen(vendor, "m").provider)

    async def refuse(*_):
        raise AssertionError("a thread")

    monkeypatch.setattr(asyncio, "to_thread", refuse)
    client = await providers.client(vendor, Destination("https://example.org", "key", use_proxy=False))
    await client.close()


def test_clients_share_one_tls_context_until_the_certificates_change(tmp_path, monkeypatch):
    file = tmp_path / "certificates.pem"
    shutil.copy(trustme_file(tmp_path), file)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    first = http.tls_context()
    assert http.tls_context() is first
    shutil.copy(trustme_file(tmp_path), tmp_path / "new.pem")
    (tmp_path / "new.pem").replace(file)
    second = http.tls_context()
    assert second is not first
    monkeypatch.delenv("SSL_CERT_FILE")
    assert http.tls_context() is not second


def trustme_file(folder):
    """The certificate of a new authority."""
    path = folder / "authority.pem"
    trustme.CA().cert_pem.write_to_path(path)
    return path


async def test_an_early_import_that_fails_prints_nothing(providers, monkeypatch, capfd):
    """Such as one that is under way when `zot rpc` ends: the interpreter refuses it half way."""

    def fail(api):
        raise RuntimeError(f"cannot import {api} after shutdown")

    monkeypatch.setattr(connect, "load", fail)
    monkeypatch.setattr(connect, "_loaded", set())
    await warmed(providers, "openai")
    assert capfd.readouterr() == ("", "")


async def test_garbage_is_collected_when_a_later_session_warms_up(providers):
    class Circle:
        def __init__(self):
            self.itself = self

    await warmed(providers, "openai")
    circle = Circle()
    gone = weakref.ref(circle)
    del circle
    await warmed(providers, "openai")
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize("api", connect.APIS)
def test_no_full_collection_runs_while_an_sdk_is_loaded(api):
    """It would hold the event loop for up to 100 ms."""
    program = f"""
import gc
from zotd.providers import connect
full = []
gc.callbacks.append(lambda phase, info: full.append(phase) if info["generation"] == 2 else None)
before = gc.get_threshold()
connect.load({api!r})
print(full, gc.get_threshold() == before, gc.get_freeze_count() > 0)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)
    assert ran.stdout == "[] True True\n"
