"""Which model a session uses, with which key, at which address."""

import os
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.providers.conftest import parts_of
from zotd.config import Config, ModelEntry, ProviderSection
from zotd.config.current import CurrentConfig
from zotd.core.records import Settings
from zotd.core.retry import Failure, ModelError
from zotd.logins.desk import Logins
from zotd.providers.catalog import Catalog
from zotd.providers.connect import Providers
from zotd.sessions.models import Keys, ModelChooser
from zotd.store.logins import LoginStore
from zotd.testing import script
from zotd.testing.model_server import ModelServer
from zotd.wire.errors import CommandError
from zotd.workspace.environment import Environment, split


@asynccontextmanager
async def choosing(config=None, stored=None, inherited=None):
    """A chooser with these keys."""
    config = config or Config()
    catalog = Catalog.load(None, config)
    providers = Providers(catalog, os.environ)
    keys = Keys(
        stored=lambda: stored or {},
        store=lambda *_: False,
        command=lambda: None,
        inherited=inherited or {},
    )
    current = CurrentConfig(config)
    with tempfile.TemporaryDirectory() as home:
        store = LoginStore(Path(home), lambda: None, prefers_vault=lambda: False)
        logins = Logins(store, current, titles=str, spawn=lambda *_: None)
        try:
            yield ModelChooser(catalog=catalog, providers=providers, keys=keys, logins=logins, config=current)
        finally:
            await providers.close()


def client(chooser, **env):
    return split(env, chooser.catalog.key_variables(), None)


def acme(url, **fields):
    return Config(providers={"acme": ProviderSection(base_url=url, key_env=("ACME_KEY",), **fields)})


async def test_a_vendor_of_the_configuration_gets_the_key_of_its_variable_in_its_header():
    async with ModelServer([script.text("ok"), script.text("ok")]) as server:
        config = acme(server.openai_url, key_header="api-key", headers={"X-Team": "blue"})
        async with choosing(config) as chooser:
            environment = client(chooser, ACME_KEY="sk-acme")
            settings = Settings(provider="acme", model="m")
            chooser.check(settings, environment)
            for _ in range(2):  # the second request repeats the headers of the first
                await parts_of(await chooser.open(settings, environment))
            assert "ACME_KEY" not in environment.variables
    for request in server.requests:
        headers = {name.lower(): value for name, value in request.headers.items()}
        assert (headers["api-key"], headers["x-team"]) == ("sk-acme", "blue")
        assert "authorization" not in headers


async def test_a_vendor_of_the_configuration_can_speak_the_other_dialect():
    async with ModelServer([script.text("ok")]) as server:
        config = acme(server.url, dialect="anthropic", key_header="Authorization", key_prefix="Bearer ")
        async with choosing(config, stored={"acme": "sk-stored"}) as chooser:
            await parts_of(await chooser.open(Settings(provider="acme", model="m"), Environment({})))
    (request,) = server.requests
    assert request.path == "/v1/messages"
    assert request.headers["Authorization"] == "Bearer sk-stored"
    assert "x-api-key" not in {name.lower() for name in request.headers}


async def test_a_variable_in_a_configured_address_comes_from_the_client_or_else_from_the_daemon():
    section = ProviderSection(base_url="http://127.0.0.1:9/{PLACE}/v1")
    async with choosing(Config(providers={"acme": section}), inherited={"PLACE": "daemon"}) as chooser:
        for environment, place in ((client(chooser, PLACE="client"), "client"), (client(chooser), "daemon")):
            model = await chooser.open(Settings(provider="acme", model="m"), environment)
            with pytest.raises(ModelError, match=f"at http://127.0.0.1:9/{place}/v1"):
                await parts_of(model)


async def test_an_address_without_its_variable_is_refused_with_the_way_out():
    section = ProviderSection(base_url="https://{PLACE}.acme.example/v1")
    async with choosing(Config(providers={"acme": section})) as chooser:
        with pytest.raises(CommandError, match="set PLACE"):
            chooser.check(Settings(provider="acme", model="m"), Environment({}))
        assert not any(model.ready for model in chooser.listed("acme", Environment({})))
        with pytest.raises(ModelError) as caught:
            await parts_of(await chooser.open(Settings(provider="acme", model="m"), Environment({})))
        assert caught.value.failure is Failure.NO_KEY or "set PLACE" in caught.value.sentence


async def test_an_address_of_a_request_is_not_filled_from_the_environment():
    async with choosing() as chooser:
        settings = Settings(provider="openai", model="m", base_url="http://127.0.0.1:9/{SECRET}/v1")
        model = await chooser.open(settings, client(chooser, SECRET="hidden"))
        with pytest.raises(ModelError) as caught:
            await parts_of(model)
    assert "hidden" not in caught.value.sentence


async def test_models_used_last_are_listed_first_and_superseded_ones_only_on_request():
    async with choosing(stored={"anthropic": "k", "openai": "k"}) as chooser:
        chooser.remember("anthropic", "claude-opus-4-5")
        chooser.remember("openai", "of-my-own")
        everything = chooser.listed(None, Environment({}))
        current = chooser.listed(None, Environment({}), current=True)
    names = [(model.provider, model.id) for model in everything]
    assert names[:2] == [("openai", "of-my-own"), ("anthropic", "claude-opus-4-5")]
    assert [(model.provider, model.id) for model in current[:2]] == names[:2]
    assert not any(model.superseded for model in current[2:])
    assert ("openai", "gpt-4o") in names
    assert ("openai", "gpt-4o") not in [(model.provider, model.id) for model in current]


async def test_a_model_that_was_used_last_is_not_listed_for_another_vendor():
    async with choosing() as chooser:
        chooser.remember("ollama", "of-my-own")
        assert "of-my-own" not in {model.id for model in chooser.listed("openai", Environment({}))}


async def test_the_users_models_are_current_and_known():
    rows = (ModelEntry(provider="openai", id="gpt-3.5-turbo"), ModelEntry(provider="openai", id="house-model"))
    async with choosing(Config(models=rows)) as chooser:
        current = {model.id for model in chooser.listed("openai", Environment({}), current=True)}
        assert {"gpt-3.5-turbo", "house-model"} <= current
        assert chooser.known("openai", "house-model")
        assert not chooser.known("openai", "nobody-knows")
