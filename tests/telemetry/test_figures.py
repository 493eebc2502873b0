"""Figures of runs, as records give them and as a daemon reports them."""

import subprocess
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.needs import needs
from zotd.core import records
from zotd.core.run_watch import GuardAnswer
from zotd.ledger.ledger import Shown
from zotd.telemetry.figures import MAX_MODELS, MAX_WORKSPACES, OTHER, RunFigures
from zotd.testing.script import CallPart, Refusal, ScriptedReply, TextPart, calls, text
from zotd.wire import events
from zotd.wire.content import Text, Tokens

TIME = "2026-11-21T20:11:18.919Z"


def row(model="m", tokens=None, took_s=1.0, **fields):
    return records.UsageRow(
        time=TIME, run="r", step=1, provider="p", model=model, tokens=tokens, took_s=took_s, **fields
    )


def result(name, took_s, *, is_error=False):
    return records.CallResult(
        time=TIME, run="r", call_id="c", name=name, is_error=is_error, content=[Text("x")], took_s=took_s
    )


def told(figures, *stored, workspace="/w"):
    figures.watch(workspace)([Shown(one) for one in stored])
    return {family.name: family for family in figures.families()}


def values(family):
    return {tuple(one.labels.values()): one.value for one in family.samples}


def test_a_request_counts_its_tokens_cost_and_times():
    tokens = Tokens(input=10, output=40, cache_read=5, cost_usd=0.25)
    found = told(RunFigures(), row(tokens=tokens, took_s=2.5, first_s=0.5))
    assert values(found["zotd_model_tokens"]) == {
        ("p", "m", "/w", "input"): 10,
        ("p", "m", "/w", "output"): 40,
        ("p", "m", "/w", "cache_read"): 5,
    }
    assert values(found["zotd_model_cost_usd"]) == {("p", "m", "/w"): 0.25}
    assert values(found["zotd_model_requests"]) == {("p", "m", "/w"): 1}
    (first,) = found["zotd_model_time_to_first_token_seconds"].samples
    assert (first.labels["workspace"], first.value, first.sum) == ("/w", 1, 0.5)
    (speed,) = found["zotd_model_output_tokens_per_second"].samples
    assert (speed.value, speed.sum) == (1, 20.0)
    assert sum(speed.counts) == 1


def test_what_the_cache_did_not_have_counts_by_reason():
    missed = row(tokens=Tokens(input=10), missed=12_000, missed_because="pause")
    found = told(RunFigures(), missed, missed, row(tokens=Tokens(input=10)))
    assert values(found["zotd_model_cache_missed_tokens"]) == {("p", "m", "/w", "pause"): 24_000}


def test_a_failed_request_counts_by_kind_and_has_no_duration():
    found = told(RunFigures(), row(took_s=0.1, failure="overloaded"), row(took_s=None, failure="refused"))
    assert values(found["zotd_model_request_errors"]) == {
        ("p", "m", "/w", "overloaded"): 1,
        ("p", "m", "/w", "refused"): 1,
    }
    assert found["zotd_model_request_duration_seconds"].samples == []


def test_a_call_that_a_person_chose_is_no_request():
    assert told(RunFigures(), row(tokens=Tokens(), took_s=None))["zotd_model_requests"].samples == []


def test_tool_calls_count_by_tool_and_workspace_and_those_that_did_not_run_only_as_errors():
    found = told(
        RunFigures(), result("bash", 0.2), result("bash", 7.0, is_error=True), result("read", None, is_error=True)
    )
    (bash,) = found["zotd_tool_duration_seconds"].samples
    assert (bash.labels, bash.value, bash.sum) == ({"tool": "bash", "workspace": "/w"}, 2, 7.2)
    assert values(found["zotd_tool_errors"]) == {("bash", "/w"): 1, ("read", "/w"): 1}


def test_tool_calls_in_workspaces_beyond_the_limit_share_a_series():
    figures = RunFigures()
    for number in range(MAX_WORKSPACES + 5):
        told(figures, result("bash", 0.1), workspace=f"/{number}")
    found = values({family.name: family for family in figures.families()}["zotd_tool_duration_seconds"])
    assert (found["bash", OTHER], len(found)) == (5, MAX_WORKSPACES + 1)


def test_a_value_at_the_bound_of_a_bucket_is_in_it():
    found = told(RunFigures(), result("bash", 0.005), result("bash", 0.0051), result("bash", 1e6))
    (bash,) = found["zotd_tool_duration_seconds"].samples
    assert (bash.counts[0], bash.counts[1], bash.counts[-1]) == (1, 1, 1)
    assert len(bash.counts) == len(found["zotd_tool_duration_seconds"].bounds) + 1


def test_models_and_workspaces_beyond_the_limit_share_a_series():
    figures = RunFigures()
    for number in range(MAX_MODELS + 5):
        told(figures, row(f"m{number}", took_s=1.0), workspace=f"/{number}")
    found = values({family.name: family for family in figures.families()}["zotd_model_requests"])
    assert found[OTHER, OTHER, OTHER] == 5
    assert len({key[:2] for key in found}) == MAX_MODELS + 1
    assert len({key[2] for key in found}) == MAX_WORKSPACES + 1


@pytest.mark.parametrize(
    ("last", "outcome"),
    [
        (records.Reply(time=TIME, run="r", step=1, content=[], stop="end_turn"), "end_turn"),
        (records.Note(time=TIME, level="error", text="no"), "error"),
        (records.Note(time=TIME, level="info", text="aborted"), "aborted"),
        (records.Note(time=TIME, level="info", text="compacted"), "compacted"),
        (records.Interrupted(time=TIME, what="run", text="cut"), "cut"),
    ],
)
def test_a_run_counts_by_its_outcome(last, outcome):
    figures = RunFigures()
    figures.watch("/w")([Shown(last, [events.Done(run="r")])])
    assert values({family.name: family for family in figures.families()}["zotd_runs"]) == {(outcome,): 1}


def test_a_person_s_command_is_no_run():
    figures = RunFigures()
    command = records.ShellResult(time=TIME, id="r", context=False, content=[])
    figures.watch("/w")([Shown(command, [events.Done(run="r")])])
    assert {family.name: family for family in figures.families()}["zotd_runs"].samples == []


def test_guards_count_by_extension_and_event():
    figures = RunFigures()
    answer = GuardAnswer("k", "careful", "tool_call", "c", 1.0, 0.02, "allowed")
    figures.guarded(answer.extension, answer.event, answer.took_s)
    (sample,) = {family.name: family for family in figures.families()}["zotd_guard_duration_seconds"].samples
    assert (sample.labels, sample.value) == ({"extension": "careful", "event": "tool_call"}, 1)


# --- a daemon -----------------------------------------------------------------------------------------------------


async def metrics_of(talk):
    found = await talk.client.ask("daemon.metrics")
    return {one["name"]: one.get("samples", []) for one in found["families"]}


async def test_a_daemon_reports_what_its_runs_did(traced, model):
    house = traced(ZOT_TELEMETRY_TRACES="false")
    server = await model(
        Refusal(529),
        ScriptedReply([CallPart("bash", {"command": "exit 3"})], usage=Tokens(input=100, output=20)),
        ScriptedReply([TextPart(["ok"])], usage=Tokens(input=5, output=1)),
    )
    talk = await house.create("openai", server, model="gpt-5.6-sol")
    await talk.run()
    found = await metrics_of(talk)
    where = {"provider": "openai", "model": "gpt-5.6-sol", "workspace": str(house.cwd)}
    assert {"labels": {**where, "type": "input"}, "value": 105.0} in found["zotd_model_tokens"]
    assert found["zotd_model_requests"] == [{"labels": where, "value": 3.0}]
    assert [(one["labels"]["error"], one["value"]) for one in found["zotd_model_request_errors"]] == [
        ("overloaded", 1.0)
    ]
    assert found["zotd_model_retries"] == [{"labels": where, "value": 1.0}]
    assert found["zotd_model_cost_usd"][0]["value"] > 0
    (first,) = found["zotd_model_time_to_first_token_seconds"]
    assert first["value"] == 2.0
    assert [(one["labels"], one["value"]) for one in found["zotd_tool_duration_seconds"]] == [
        ({"tool": "bash", "workspace": str(house.cwd)}, 1.0)
    ]
    assert found["zotd_runs"] == [{"labels": {"outcome": "end_turn"}, "value": 1.0}]
    assert "zotd_telemetry_spans" not in found


async def test_a_daemon_reports_what_waits(traced, model):
    house = traced(ZOT_TELEMETRY_TRACES="false")
    server = await model(calls(CallPart("bash", {"command": "true"})), text("done"))
    client = await house.connect(client={"name": "ann"}, can_approve=True)
    talk = await house.create("openai", server, client, mode="ask")
    await talk.ask("prompt", message="go")
    await talk.until("approval_requested")
    found = await metrics_of(talk)
    assert found["zotd_approvals_waiting"] == [{"labels": {"workspace": str(house.cwd)}, "value": 1.0}]
    states = {one["labels"]["state"]: one["value"] for one in found["zotd_sessions_by_state"]}
    assert states == {"idle": 0, "running": 0, "waiting": 1, "held": 0, "blocked": 0}


def exposed(house):
    """What `zotctl metrics --prometheus` prints."""
    command = [sys.executable, "-m", "zotctl", "metrics", "--prometheus"]
    return subprocess.run(command, env=house.place.env, capture_output=True, check=True, timeout=60, text=True).stdout


async def test_the_text_for_prometheus_has_the_same_figures(traced, model):
    house = traced(ZOT_TELEMETRY_TRACES="false")
    server = await model(calls(CallPart("read", {"path": 'no"where'})), text("done"))
    talk = await house.create("openai", server)
    await talk.run()
    families = {one.name: one for one in text_string_to_metric_families(exposed(house))}
    buckets = [one for one in families["zotd_tool_duration_seconds"].samples if one.name.endswith("_bucket")]
    assert buckets[-1].labels == {"tool": "read", "workspace": str(house.cwd), "le": "+Inf"}
    assert buckets[-1].value == 1
    assert [one.value for one in buckets] == sorted(one.value for one in buckets)
    assert families["zotd_model_requests"].samples[0].labels["workspace"] == str(house.cwd)
    assert families["zotd_sessions"].samples[0].value == 1


def fault_of(metrics):
    """What `promtool` has to say about the text."""
    command = ["promtool", "check", "metrics"]
    checked = subprocess.run(command, input=metrics, capture_output=True, check=False, timeout=60, text=True)
    return f"{checked.stdout}{checked.stderr}"


async def test_promtool_finds_no_fault_with_the_text(traced, model):
    needs("promtool")
    house = traced()
    talk = await house.create("openai", await model(calls(CallPart("read", {"path": "a"})), text("done")))
    await talk.run()
    assert fault_of(exposed(house)) == ""
