"""A client's environment: what tools get, what only providers get, and what nobody gets."""

import pytest

from zotd.workspace.environment import split

KEYS = frozenset({"OPENAI_API_KEY", "ANTHROPIC_API_KEY"})


def test_tools_get_the_environment_as_it_is():
    env = {"PATH": "/bin", "HOME": "/home/u", "LANG": "", "ZOT_HOME": "/home/u/.zot"}
    assert split(env, KEYS, None).variables == env


def test_keys_are_held_apart_and_never_reach_a_tool():
    found = split({"PATH": "/bin", "OPENAI_API_KEY": "sk-1", "ANTHROPIC_API_KEY": ""}, KEYS, None)
    assert found.variables == {"PATH": "/bin"}
    assert found.keys == {"OPENAI_API_KEY": "sk-1"}


def test_a_key_of_a_provider_that_we_do_not_know_is_a_variable_like_any_other():
    assert split({"OTHER_API_KEY": "x"}, KEYS, None).variables == {"OTHER_API_KEY": "x"}


@pytest.mark.parametrize("name", ["ZOTCORE_RPC_TOKEN", "ZOTCORE_ANYTHING", "ZOT_TOKEN", "ZOTD_TOKEN", "ZOT_WEB_TOKEN"])
def test_tokens_of_ours_go_nowhere(name):
    found = split({name: "secret"}, KEYS | {name}, None)
    assert "secret" not in found.variables.values()
    assert name not in found.variables


@pytest.mark.parametrize("name", ["GITHUB_TOKEN", "ZOTERO", "ZOT_TOKENS", "MY_ZOTCORE_X"])
def test_what_only_looks_like_one_is_kept(name):
    assert split({name: "x"}, KEYS, None).variables == {name: "x"}


def test_no_secret_is_in_what_a_log_might_print():
    shown = repr(split({"PATH": "/bin", "OPENAI_API_KEY": "sk-1"}, KEYS, "sk-2"))
    assert "sk-1" not in shown
    assert "sk-2" not in shown


def test_the_key_of_the_command_line_is_for_providers():
    found = split({}, KEYS, "sk-2")
    assert (found.api_key, found.variables) == ("sk-2", {})


@pytest.mark.parametrize(("env", "trusts"), [({"ZOT_TRUST": "1"}, True), ({"ZOT_TRUST": "0"}, False), ({}, False)])
def test_a_client_may_trust_the_code_of_its_directory(env, trusts):
    assert split(env, KEYS, None).trusts_workspace is trusts
