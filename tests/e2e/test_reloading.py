"""`daemon.reload`: the configuration is read again while the daemon runs, and sessions notice."""

import logging

import pytest

from zotd.testing.script import CallPart, calls, text

BASH = calls(CallPart("bash", {"command": "echo ran"}))

DENIED = "[[rules]]\ntool = 'bash'\naction = 'deny'\n"


@pytest.fixture
async def admin(house):
    return await house.connect(role="admin")


@pytest.fixture
def config(house):
    """Writes the configuration."""
    return (house.place.home / "config.toml").write_text


async def test_rules_hold_from_the_next_run_on_in_sessions_that_are_open(house, admin, config, model, results):
    server = await model(BASH, text("one"), BASH, text("two"))
    talk = await house.create("anthropic", server)
    await talk.run()
    assert "ran" in results(server.requests[1])[-1]
    config(DENIED)
    assert (await admin.ask("daemon.reload"))["applied"] == ["rules"]
    await talk.run()
    assert "denied" in results(server.requests[3])[-1]


MODE_OF_THE_FILE = {"ZOT_APPROVAL_MODE": ""}
"""Without the variable of most tests, which would be stronger."""


@pytest.mark.parametrize("variables", [MODE_OF_THE_FILE])
async def test_new_sessions_begin_with_what_it_says_now(house, admin, config, model):
    server = await model(text("hi"))
    config(
        f"max_steps = 7\nreasoning = 'low'\n[approval]\nmode = 'ask'\n[providers.ollama]\nbase_url = '{server.openai_url}'\n"
    )
    found = await admin.ask("daemon.reload")
    assert found["applied"] == ["approval.mode", "max_steps", "providers.ollama.base_url", "reasoning"]
    talk = await house.create("openai", None, provider="ollama", model="m", secrets=None)
    state = (await house.follow(talk.id)).snapshot["session"]
    assert (state["mode"], state["reasoning"]) == ("ask", "low")
    await talk.run()
    assert len(server.requests) == 1


async def test_a_budget_counts_earlier_costs(house, admin, config, model):
    talk = await house.create("anthropic", await model(text("one"), text("two")))
    await talk.run()
    config("[budget]\nday_tokens = 10\n")
    await admin.ask("daemon.reload")
    assert await talk.refused("prompt", message="again") == "budget_exceeded"
    config("")
    await admin.ask("daemon.reload")
    await talk.run()


async def test_a_bad_one_changes_nothing_and_is_told_until_a_good_one_comes(house, admin, config):
    config("log_level = 'debug'\n")
    await admin.ask("daemon.reload")
    for bad in ("log_level = 'loud'\n", "log_level", "api_key = 'x'\n"):
        config(bad)
        answer = await admin.answer("daemon.reload")
        assert (answer["success"], answer["code"]) == (False, "conflict")
        assert (await admin.ask("daemon.status"))["warnings"] == [answer["error"]]
    assert logging.getLogger("zotd").level == logging.DEBUG
    config("")
    assert (await admin.ask("daemon.reload"))["applied"] == ["log_level"]
    assert (await admin.ask("daemon.status"))["warnings"] == []
    assert logging.getLogger("zotd").level == logging.INFO


async def test_what_needs_a_restart_is_named_until_it_has_its_old_value_again(admin, config):
    config("[ext]\ntool_timeout_s = 5\n[local]\nmodel = '/m.gguf'\n")
    for _ in range(2):
        found = await admin.ask("daemon.reload")
        assert (found["applied"], found["restart"]) == ([], ["ext.tool_timeout_s", "local.model"])
    config("typo = 1\n")
    found = await admin.ask("daemon.reload")
    assert (found["applied"], found["restart"]) == ([], [])
    assert "unknown setting typo" in found["warnings"][0]
    assert (await admin.ask("daemon.status"))["warnings"] == found["warnings"]


async def test_of_reloads_that_overlap_the_first_has_changed_something(admin, config):
    config("compact_at = 0.5\n")
    answers = [await admin.answer_to(number) for number in [admin.send("daemon.reload") for _ in range(5)]]
    assert [answer["data"]["applied"] for answer in answers] == [["compact_at"], [], [], [], []]


async def test_only_an_admin_may_ask_for_it(house):
    client = await house.connect(role="approve")
    assert await client.refused("daemon.reload") == "forbidden"
