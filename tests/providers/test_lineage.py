"""Which models have a successor, judged by their names."""

import pytest

from zotd.providers.catalog import Catalog
from zotd.providers.catalog.lineage import lineage, superseded


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("claude-opus-4-8", "claude-opus-5-5"),
        ("claude-3-5-sonnet", "claude-sonnet-4-5"),
        ("gpt-5.6-sol", "gpt-6.1-sol"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("gpt-4o-mini", "gpt-6-sol"),
        ("grok-4.20", "grok-4.3"),
        ("kimi-k2.6", "kimi-k3"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5"),
        ("anthropic.claude-opus-4-7-v1:0", "anthropic.claude-opus-5"),
        ("mistral-large-2512", "mistral-large-4"),
    ],
)
def test_a_model_is_superseded_by_a_later_one(old, new):
    assert superseded([new, old]) == {old}


@pytest.mark.parametrize(
    "models",
    [
        ["claude-opus-5-5", "claude-haiku-5-5"],
        ["gpt-5.5", "gpt-6-sol"],
        ["qwen3-32b", "qwen3-8b"],
        ["openai/gpt-5", "other/gpt-6"],
        ["llama-3.3-70b-versatile", "llama-3.1-8b-instant"],
        ["gemini-2.5-pro", "gemini-3.1-pro-preview"],
    ],
)
def test_models_of_different_kinds_supersede_each_other_not(models):
    assert superseded(models) == set()


def test_sizes_and_dates_are_no_versions():
    assert lineage("meta/llama-3.1-70b-instruct").version == (3.1,)
    assert lineage("o3-2025-04-16").version == (3,)
    assert lineage("mistral-small-24b-instruct-2501").is_dated


def test_current_models_are_listed_before_superseded_ones_and_the_default_is_current():
    catalog = Catalog.load(None)
    for vendor in ("anthropic", "openai"):
        models = catalog.models(vendor)
        marks = [model.superseded for model in models]
        assert marks == sorted(marks)
        assert any(marks)
        assert (models[0].id, models[0].superseded) == (catalog.default_model(vendor), False)
