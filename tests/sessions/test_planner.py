"""What a run works with: taken over from the run before while nothing has changed, computed anew when something has."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from zotd import config
from zotd.core import records
from zotd.embed.session_runtime import Runtime
from zotd.testing.live_daemon import place as place_in
from zotd.wire.content import Text

TIME = "2026-11-23T20:11:18.919Z"


@pytest.fixture
def place(tmp_path):
    return place_in(tmp_path)


@pytest.fixture
async def runtime(place):
    options = {"cwd": str(place.cwd), "provider": "anthropic", "api_key": "sk-x", "base_url": "http://127.0.0.1:9"}
    async with Runtime.open(options, env={**place.env, "ZOT_TRUST": "1"}) as runtime:
        yield runtime


async def planned(runtime, **wishes):
    first = records.Input(time=TIME, id="i_1", content=[Text("go")], **wishes)
    return await runtime.manager.planner.plan(runtime.session, first)


async def test_runs_share_everything_but_the_model_while_nothing_changes(runtime):
    one, other = await planned(runtime), await planned(runtime)
    assert one.models is not other.models
    assert one.authorization is other.authorization
    assert replace(one, models=other.models) == other


# --- what makes the next run another one ------------------------------------------------------------------------


async def another_model(runtime, place):
    del place
    await runtime.set_model("claude-opus-4-5")


async def instructions(runtime, place):
    del runtime
    (place.cwd / "AGENTS.md").write_text("Use tabs.")


async def a_system_prompt(runtime, place):
    del runtime
    place.home.mkdir(exist_ok=True)
    (place.home / "SYSTEM.md").write_text("You are a parrot.")


async def a_skill(runtime, place):
    del runtime
    file = place.home / "skills" / "sums" / "SKILL.md"
    file.parent.mkdir(parents=True)
    file.write_text("---\nname: sums\ndescription: Adds numbers.\n---\nAdd them.")


async def a_rule_of_the_workspace(runtime, place):
    del runtime
    file = place.cwd / ".zot" / "config.toml"
    file.parent.mkdir()
    file.write_text('[[rules]]\ntool = "bash"\naction = "deny"\nmatch = "rm *"\n')


async def a_rule_of_the_user(runtime, place):
    del place
    runtime.manager.rules.replace([config.RuleEntry(tool="bash", action="deny", match="rm *")])


async def the_configuration(runtime, place):
    del place
    current = runtime.manager.config
    current.swap(replace(current.value, compact_at=0.5))


async def the_environment(runtime, place):
    del place
    runtime.session.use_environment(runtime.manager.environment({"LANG": "xx"}, "sk-x"))


async def an_extension_of_another_name(runtime, place):
    file = place.cwd / ".zot" / "extensions" / "tools" / "count.py"
    file.parent.mkdir(parents=True)
    file.write_text(
        '"""Count."""\n\n\ndef run(text: str) -> str:\n    """Count characters."""\n    return str(len(text))\n'
    )
    pool = runtime.manager.extension_pool
    await pool.reload(pool.of_session(runtime.session.id), None)
    await runtime.session.extensions.ready()


CHANGES = {
    another_model: lambda plan: plan.settings.model == "claude-opus-4-5",
    instructions: lambda plan: "Use tabs." in plan.system,
    a_system_prompt: lambda plan: plan.system.startswith("You are a parrot."),
    a_skill: lambda plan: "- sums: Adds numbers." in plan.system,
    a_rule_of_the_workspace: lambda plan: plan.authorization.is_needed,
    a_rule_of_the_user: lambda plan: plan.authorization.is_needed,
    the_configuration: lambda plan: plan.compact_at == 0.5,
    the_environment: lambda plan: plan.tool_context("c_1", print).env.get("LANG") == "xx",
    an_extension_of_another_name: lambda plan: "count" in plan.toolbox().tools,
}
"""Each change, and how the next run shows it."""


@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_counts_from_the_next_run_on(runtime, place, change):
    is_seen = CHANGES[change]
    assert not is_seen(await planned(runtime))
    await change(runtime, place)
    assert is_seen(await planned(runtime))


def change_trust(runtime, change):
    """Call `grant` or `revoke` of the trust, as a client's command does."""
    pool, cwd = runtime.manager.extension_pool, Path(runtime.session.ledger.row.cwd)
    getattr(pool.trust, change)(cwd)
    pool.trust_changed(os.path.realpath(cwd))


async def test_trust_counts_from_the_next_run_on_in_a_session_without_extensions(place):
    await a_rule_of_the_workspace(None, place)
    place.home.mkdir(exist_ok=True)
    options = {"cwd": str(place.cwd), "provider": "anthropic", "api_key": "sk-x", "base_url": "http://127.0.0.1:9"}
    async with Runtime.open(options, env=place.env) as runtime:
        assert not (await planned(runtime)).authorization.is_needed
        for change, is_trusted in (("grant", True), ("revoke", False)):
            change_trust(runtime, change)
            for _ in range(2):  # the second run has nothing to wait for
                assert (await planned(runtime)).authorization.is_needed == is_trusted


async def test_the_system_prompt_says_when_the_session_began_and_so_stays_the_same_on_the_next_day(runtime):
    began = runtime.session.ledger.row.created
    assert f"Date at the start of this session: {began[:10]}" in (await planned(runtime)).system


async def test_rules_about_the_home_directory_follow_the_environment_of_the_tools(runtime):
    before = await planned(runtime)
    runtime.session.use_environment(runtime.manager.environment({"HOME": "/elsewhere"}, "sk-x"))
    assert (await planned(runtime)).authorization is not before.authorization


async def test_a_tool_that_has_come_is_not_missed_any_more(place):
    options = {"cwd": str(place.cwd), "provider": "anthropic", "api_key": "sk-x", "tools": ["read", "count"]}
    async with Runtime.open(options, env={**place.env, "ZOT_TRUST": "1"}) as runtime:
        assert any("there is no tool count" in note for note in (await planned(runtime)).notes)
        await an_extension_of_another_name(runtime, place)
        assert not any("there is no tool count" in note for note in (await planned(runtime)).notes)


# --- what one run wants ------------------------------------------------------------------------------------------


async def test_what_a_sender_wants_of_its_run_is_not_taken_over_by_the_next(runtime):
    usual = await planned(runtime)
    wanted = await planned(runtime, patience_s=1.0, unattended="deny")
    assert wanted.models.usual.patience_s == 1.0
    assert wanted.authorization is not usual.authorization
    after = await planned(runtime)
    assert (after.models.usual, after.authorization) == (usual.models.usual, usual.authorization)


async def test_a_hint_is_shown_once_and_a_problem_of_a_file_in_each_run(runtime, place):
    (place.cwd / "AGENTS.md").mkdir()
    first, second = await planned(runtime), await planned(runtime)
    assert first.notes == second.notes
    assert any("AGENTS.md" in note for note in second.notes)


async def test_nothing_is_kept_of_a_session_that_leaves_memory(runtime):
    before = await planned(runtime)
    runtime.manager.planner.forget(runtime.session)
    assert (await planned(runtime)).authorization is not before.authorization
