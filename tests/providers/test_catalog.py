"""Vendors, models, prices."""

import json
import logging
import subprocess
import sys

import msgspec
import pytest
from genai_prices import Usage
from genai_prices.data_snapshot import get_snapshot
from msgspec.structs import replace

from zotd.config import Config, ModelEntry, ModelPrices, ProviderSection
from zotd.core.budget import FREE, Rates
from zotd.providers.catalog import Catalog, prices
from zotd.providers.catalog.lineage import newest_first
from zotd.providers.catalog.overlay import Overlay
from zotd.providers.catalog.wishes import unmet
from zotd.providers.connect import APIS, EXTRAS
from zotd.wire.content import Tokens


@pytest.fixture(scope="module")
def catalog():
    return Catalog.load(None)


@pytest.fixture
def overlaid(tmp_path):
    def load(document):
        path = tmp_path / "models.json"
        path.write_text(document if isinstance(document, str) else json.dumps(document))
        return Catalog.load(path)

    return load


def test_every_vendor_has_an_api_that_we_speak_and_a_default_model_that_exists(catalog):
    for vendor in catalog.vendors():
        assert vendor.api in APIS or vendor.api in EXTRAS
        default = catalog.default_model(vendor.name)
        assert default or vendor.name in {"lmstudio", "vllm"}  # they serve what was loaded into them
        if vendor.prices:
            assert catalog.find(vendor.name, default).context_window >= 100_000
            assert default in {model.id for model in catalog.models(vendor.name)}


def test_names_and_aliases_mean_the_same_vendor(catalog):
    assert catalog.by_name["kimi"] is catalog.by_name["moonshot"]
    assert catalog.find("kimi", "kimi-k3") == catalog.find("moonshot", "kimi-k3")
    names = [name for vendor in catalog.vendors() for name in (vendor.name, *vendor.aliases)]
    assert len(names) == len(set(names))


def test_key_variables_are_those_of_all_vendors(catalog):
    assert {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "KIMI_API_KEY"} <= catalog.key_variables()


def test_models_are_those_to_talk_to(catalog):
    ids = {model.id for model in catalog.models("openai")}
    assert {"gpt-4o", "o3"} <= ids
    assert not {id_ for id_ in ids if "embed" in id_ or "whisper" in id_ or "image" in id_}


def test_models_that_answer_in_one_api_only_are_listed_with_it(catalog):
    needed = {model.id: model.api for model in catalog.models("openai")}
    for model in ("gpt-5-pro", "gpt-5.5-pro", "o3-pro", "gpt-5.3-codex", "codex-mini"):
        assert needed[model] == "responses"
        assert catalog.find("openai", model).reasoning
    assert (needed["gpt-5.6-sol"], needed["gpt-4o"]) == (None, None)
    assert catalog.assumed("openai", "gpt-9-pro").api == "responses"
    assert catalog.assumed("openrouter", "gpt-5-pro").api is None


@pytest.mark.parametrize(
    ("vendor", "api", "model", "reasoning", "tools", "words"),
    [
        ("openai", "responses", "gpt-5.6-sol", "high", True, None),
        ("openai", "openai", "gpt-5.6-sol", "off", True, None),
        ("openai", "openai", "gpt-5.6-sol", "high", False, None),
        ("openai", "openai", "gpt-5.6-sol", "high", True, 'set providers.openai.api = "responses" in config.toml'),
        ("openai", "openai", "o3", "high", True, None),
        ("openai", "responses", "gpt-4o", "low", True, "gpt-4o is not known to reason, so reasoning low has no effect"),
        ("anthropic", "anthropic", "claude-2", "low", True, "is not known to reason"),
        (
            "deepseek",
            "openai",
            "deepseek-v4-pro",
            "low",
            True,
            "DeepSeek cannot be told how much deepseek-v4-pro reasons",
        ),
        ("openrouter", "openai", "openai/gpt-5.6-sol", "low", True, None),
    ],
)
def test_a_wish_without_effect_is_told(catalog, vendor, api, model, reasoning, tools, words):
    speaking = replace(catalog.by_name[vendor], api=api)
    said = unmet(speaking, catalog.assumed(vendor, model), reasoning, has_tools=tools)
    assert said is None if words is None else words in str(said)


def test_a_dated_id_is_the_same_model(catalog):
    model = catalog.find("anthropic", "claude-sonnet-4-5-20250929")
    assert model.id == "claude-sonnet-4-5-20250929"
    assert (model.context_window, model.max_output, model.reasoning) == (200_000, 64_000, True)


@pytest.mark.parametrize(
    ("provider", "model"), [("anthropic", "nope"), ("ollama", "qwen3"), ("nobody", "gpt-4o"), ("openai", "")]
)
def test_an_unknown_model_is_not_found_and_may_still_be_used(catalog, provider, model):
    assert catalog.find(provider, model) is None
    assert catalog.assumed(provider, model).context_window == 0
    assert catalog.price(provider, model, Tokens(10, 10)).cost_usd == 0
    assert catalog.models("nobody") == []
    assert catalog.default_model("nobody") == ""


def test_tokens_of_the_cache_cost_less(catalog):
    plain = catalog.price("anthropic", "claude-sonnet-4-5", Tokens(input=1_000_000, output=1000))
    cached = catalog.price("anthropic", "claude-sonnet-4-5", Tokens(cache_read=1_000_000, output=1000))
    assert 0 < cached.cost_usd < plain.cost_usd
    assert (plain.input, plain.output) == (1_000_000, 1000)


@pytest.mark.parametrize("written", [1000, 600])
def test_what_is_written_for_an_hour_costs_twice_as_much_as_input_by_either_way(catalog, written):
    tokens = Tokens(cache_write=1000, cache_write_hour=written)
    plain = catalog.price("anthropic", "claude-sonnet-4-5", Tokens(input=1000)).cost_usd
    expected = pytest.approx(plain * (2 * written + 1.25 * (1000 - written)) / 1000)
    assert catalog.price("anthropic", "claude-sonnet-4-5", tokens).cost_usd == expected
    tiered = catalog.flat_prices("anthropic", "claude-sonnet-4-5")
    flat = catalog.flat_prices("anthropic", "claude-haiku-4-5")
    assert (tiered, flat is not None) == (None, True)  # so both ways were looked at
    input_usd = catalog.price("anthropic", "claude-haiku-4-5", Tokens(input=1000)).cost_usd
    assert flat.usd(tokens) == pytest.approx(input_usd * (2 * written + 1.25 * (1000 - written)) / 1000)


@pytest.mark.parametrize(
    ("prices", "usd"),
    [
        ({}, 2.0),
        ({"cache_write": 2.5}, 4.0),
        ({"cache_write": 2.5, "cache_write_hour": 3.0}, 3.0),
        ({"cache_write_hour": 3.0}, 3.0),
    ],
)
def test_a_model_of_the_user_has_a_price_for_an_hour(prices, usd):
    row = ModelEntry(provider="ollama", id="m", prices=ModelPrices(input=2, output=4, **prices))
    found = Catalog.load(None, Config(models=(row,))).price(
        "ollama", "m", Tokens(cache_write=10**6, cache_write_hour=10**6)
    )
    assert found.cost_usd == pytest.approx(usd)


@pytest.mark.parametrize("tokens", [Tokens(1000, 200), Tokens(5, 900, 300_000, 40_000), Tokens(7, 0, 12, 13)])
def test_a_price_is_what_the_package_itself_calculates(tokens):
    usage = Usage(
        input_tokens=tokens.input + tokens.cache_read + tokens.cache_write,
        cache_read_tokens=tokens.cache_read,
        cache_write_tokens=tokens.cache_write,
        output_tokens=tokens.output,
    )
    snapshot = get_snapshot()
    models = [(vendor.id, model.id) for vendor in snapshot.providers for model in vendor.models]
    assert len(models) > 1000
    for vendor, model in models:
        try:
            expected = float(snapshot.calc(usage, model, vendor, None, None).total_price)
        except LookupError:  # the package itself does not find some of its models by their ids
            expected = 0.0
        assert prices.cost_usd(vendor, model, tokens) == expected, f"{vendor} {model}"
        flat = prices.flat(vendor, model)
        assert flat is None or flat.usd(tokens) == expected, f"{vendor} {model}"


def test_prices_are_flat_unless_they_are_a_user_s_or_follow_the_length_of_the_request(catalog, overlaid):
    assert catalog.flat_prices("anthropic", "claude-haiku-4-5") is not None
    assert catalog.flat_prices("anthropic", "claude-sonnet-4-5") is None
    own = {"id": "claude-haiku-4-5", "provider": "anthropic", "prices": {"input": 2, "output": 4}}
    assert overlaid({"models": [own]}).flat_prices("anthropic", "claude-haiku-4-5") is None
    assert catalog.flat_prices("local", "any") is None
    for vendor in catalog.vendors():
        assert not vendor.subscription or catalog.flat_prices(vendor.name, "gpt-5-mini") is None


def test_rates_are_prices_without_a_cache_and_unknown_ones_are_not_zero(catalog):
    plain = catalog.price("anthropic", "claude-sonnet-4-5", Tokens(input=100_000, output=1000))
    assert catalog.rates("anthropic", "claude-sonnet-4-5").usd(plain) == pytest.approx(plain.cost_usd)
    assert catalog.rates("anthropic", "nope") is None
    assert catalog.rates("nobody", "gpt-4o") is None


@pytest.mark.parametrize("provider", ["ollama", "llamacpp", "local"])
def test_a_model_on_one_s_own_machine_is_free_unless_it_has_a_price(catalog, overlaid, provider):
    assert catalog.rates(provider, "any") == FREE
    priced = {"id": "any", "provider": provider, "prices": {"input": 2, "output": 4}}
    assert overlaid({"models": [priced]}).rates(provider, "any") == Rates(2.0, 4.0)


def test_the_users_file_can_say_that_a_model_costs_nothing(overlaid):
    catalog = overlaid({"models": [{"id": "gift", "provider": "openai", "prices": {}}]})
    assert catalog.rates("openai", "gift") == FREE


def test_the_users_file_adds_vendors_and_models_and_changes_known_ones(overlaid):
    catalog = overlaid(
        {
            "providers": [{"name": "acme", "base_url": "https://llm.acme.example/v1", "key_env": ["ACME_KEY"]}],
            "models": [
                {"id": "acme-1", "provider": "acme", "context_window": 9000, "prices": {"input": 2, "output": 4}},
                {"id": "gpt-4o", "provider": "openai", "max_output": 5},
                {"id": "qwen3", "provider": "ollama", "few_shot": True},
            ],
        }
    )
    assert catalog.problem is None
    assert [model.id for model in catalog.models("acme")] == ["acme-1"]
    assert catalog.find("acme", "acme-1").context_window == 9000
    assert catalog.price("acme", "acme-1", Tokens(1_000_000, 1_000_000)).cost_usd == 6
    changed = catalog.find("openai", "gpt-4o")
    assert (changed.max_output, changed.context_window) == (5, 128_000)
    assert catalog.find("ollama", "qwen3").few_shot
    assert "ACME_KEY" in catalog.key_variables()


@pytest.mark.parametrize("document", ["{nonsense", '{"models": [{"id": 7}]}', '{"providers": [{"name": "x"}]}', "[]"])
def test_a_bad_file_is_one_warning_and_not_in_use(overlaid, document, caplog):
    with caplog.at_level(logging.WARNING):
        catalog = overlaid(document)
    assert len(caplog.records) == 1
    assert "models.json are not in use" in catalog.problem
    assert catalog.find("openai", "gpt-4o")


def test_the_configuration_adds_a_vendor_and_its_models():
    acme = ProviderSection(
        base_url="https://llm.acme.example/v1",
        dialect="anthropic",
        key_env=("ACME_KEY",),
        key_header="api-key",
        headers={"X-Team": "blue"},
        max_tokens_field="max_completion_tokens",
        extra={"temperature": 0},
    )
    row = ModelEntry(
        provider="acme", id="acme-1", context_window=9000, tools=False, prices=ModelPrices(input=2, output=4)
    )
    catalog = Catalog.load(None, Config(providers={"acme": acme}, models=(row,)))
    assert catalog.problem is None
    vendor = catalog.by_name["acme"]
    assert (vendor.api, vendor.key_header, vendor.extra) == ("anthropic", "api-key", {"temperature": 0})
    assert vendor.headers == {"Content-Type": "application/json", "X-Team": "blue"}
    assert "ACME_KEY" in catalog.key_variables()
    (model,) = catalog.models("acme")
    assert (model.context_window, model.tools, model.images, model.superseded) == (9000, False, None, False)
    assert catalog.rates("acme", "acme-1") == Rates(2.0, 4.0)
    assert catalog.price("acme", "acme-1", Tokens(cache_read=1_000_000, cache_write=1_000_000)).cost_usd == 4


def test_the_configuration_changes_only_the_fields_that_it_sets():
    section = ProviderSection(base_url="http://127.0.0.1:1/v1", headers={"X-Team": "blue"})
    catalog = Catalog.load(None, Config(providers={"openai": section}))
    before, after = Catalog.load(None).by_name["openai"], catalog.by_name["openai"]
    assert after.extra_headers == {"X-Team": "blue"}
    assert msgspec.structs.replace(after, extra_headers={}) == before


def test_the_configuration_precedes_models_json(overlaid, tmp_path):
    overlaid({"models": [{"id": "gpt-4o", "provider": "openai", "max_output": 5, "context_window": 7}]})
    row = ModelEntry(provider="openai", id="gpt-4o", max_output=6)
    model = Catalog.load(tmp_path / "models.json", Config(models=(row,))).find("openai", "gpt-4o")
    assert model is not None
    assert (model.max_output, model.context_window) == (6, 128_000)


def test_rows_that_lead_nowhere_are_left_out_with_a_sentence_each(caplog):
    sections = {"acme": ProviderSection(headers={"X": "y"})}
    with caplog.at_level(logging.WARNING):
        catalog = Catalog.load(None, Config(providers=sections, models=(ModelEntry(provider="nope", id="m"),)))
    assert len(caplog.records) == 2
    assert catalog.problem is not None
    assert "acme is not known and has no base_url" in catalog.problem
    assert "unknown provider nope" in catalog.problem
    assert "acme" not in catalog.by_name


def test_prices_of_each_kind_of_token_are_known(catalog):
    found = catalog.prices("anthropic", "claude-sonnet-4-5")
    assert (found.input, found.output, found.cache_read, found.cache_write) == (3.0, 15.0, 0.3, 3.75)
    assert catalog.prices("anthropic", "nope") is None


def test_no_file_is_no_problem(tmp_path):
    assert Catalog.load(tmp_path / "models.json").problem is None


def test_the_local_model_may_be_named_by_the_environment(monkeypatch):
    monkeypatch.setenv("ZOT_LOCAL_MODEL", "/models/x.gguf")
    catalog = Catalog.load(None)
    assert catalog.default_model("local") == "/models/x.gguf"
    assert {model.id: model.few_shot for model in catalog.models("local")} == {
        "/models/x.gguf": False,
        "smollm2-135m": True,
    }


def test_nothing_heavy_is_loaded_before_it_is_needed():
    program = (
        "import sys, zotd.providers.connect as c, zotd.providers.choice as o, zotd.providers.catalog as k\n"
        "c.Providers(k.Catalog.load(None), {}).connect(o.ModelChoice('anthropic', 'm', 'key'))\n"
        "print(*{'anthropic', 'openai', 'httpx2', 'genai_prices', 'xllamacpp', 'boto3', 'google'} & set(sys.modules))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout
    assert not loaded.split()


def test_what_an_extra_brings_is_loaded_for_its_vendor_only():
    program = (
        "import sys, zotd.providers.connect as c\n"
        "c.load('anthropic'); c.load('openai')\n"
        "print(*{'boto3', 'botocore', 'google.auth', 'requests'} & set(sys.modules))\n"
        "c.load('bedrock'); c.load('vertex')\n"
        "print(*{'botocore', 'google.auth'} & set(sys.modules))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout
    others, own = loaded.splitlines()
    assert not others
    assert set(own.split()) == {"botocore", "google.auth"}


def test_models_are_listed_with_the_default_and_the_newest_first():
    catalog = Catalog(Overlay())
    for vendor in ("anthropic", "openai"):
        names = [model.id for model in catalog.models(vendor)]
        assert names[0] == catalog.default_model(vendor)
    names = [
        "claude-2",
        "claude-3-5-haiku",
        "gpt-oss-120b",
        "claude-opus-5",
        "claude-fable-5-2",
        "gpt-4o-2024-08-06",
        "o3",
    ]
    assert sorted(names, key=newest_first) == [
        *(
            "claude-fable-5-2",
            "claude-opus-5",
            "gpt-4o-2024-08-06",
            "claude-3-5-haiku",
            "o3",
            "claude-2",
            "gpt-oss-120b",
        ),
    ]
