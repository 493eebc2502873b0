"""`zotctl models`: list, show and check, in a real daemon with a scripted model server."""

import json

import pytest

from zotctl import models
from zotd.sessions import model_probes

COUNTED = {"steps": [{"type": "text", "deltas": ["1 2 ", "3 4 ", "5"]}], "usage": {"input": 1000, "output": 20}}
CALLED = {"steps": [{"type": "call", "name": "report", "args": {"word": "walrus"}}]}
SEEN = {"steps": [{"type": "text", "deltas": ["It is ", "Red."]}]}
THOUGHT = {"steps": [{"type": "thinking", "deltas": ["17 times 23 is"]}, {"type": "text", "deltas": ["391"]}]}
WRITTEN = {"steps": [{"type": "text", "deltas": ["ok"]}], "usage": {"input": 3000, "output": 1}}
READ = {"steps": [{"type": "text", "deltas": ["ok"]}], "usage": {"input": 10, "output": 1, "cache_read": 2990}}

MODEL = "openai/gpt-5"


@pytest.fixture
def configured(live):
    """Write the configuration, with a vendor whose server plays a script once."""

    def write(*replies, more=""):
        url = live.scripted(*replies)
        (live.home / "config.toml").write_text(f'[providers.openai]\nbase_url = "{url}"\n{more}')
        live.zotctl("reload")
        live.shell.env["OPENAI_API_KEY"] = "sk-of-the-shell"

    return write


def outcomes(out):
    (model,) = json.loads(out)["models"]
    return {probe["probe"]: probe["outcome"] for probe in model["probes"]}, model["ok"]


def test_the_client_knows_the_probes_of_the_daemon():
    assert tuple(model_probes.PROBES) == models.PROBES
    assert models.PROBE_S > model_probes.PROBE_S


def test_a_check_finds_out_everything_that_works(live, configured):
    configured(COUNTED, CALLED, SEEN, THOUGHT, WRITTEN, READ)
    code, out, err = live.zotctl("models", "check", MODEL)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == MODEL
    words = [line.split()[:2] for line in lines[1:-1]]
    assert words == [[name, "yes"] for name in ("stream", "tools", "images", "reasoning", "caching")]
    assert "came in 3 pieces" in lines[1]
    assert "2,990 of 3,000 tokens" in lines[5]
    assert float(lines[-1].split()[1]) > 0


def test_a_check_tells_what_does_not_work_and_fails_if_an_agent_needs_it(live, configured):
    said = {"steps": [{"type": "text", "deltas": ["I would call it."]}]}
    refused = {"status": 400, "message": "image_url is not supported"}
    configured(COUNTED, said, refused)
    code, out, _ = live.zotctl("models", "check", MODEL, "--only", "tools,images,stream", "--json")
    assert code == 1
    assert outcomes(out) == ({"stream": "yes", "tools": "no", "images": "no"}, False)
    assert "image_url is not supported" in out


def test_a_check_gives_no_clear_verdict_on_what_has_no_visible_effect(live, configured):
    whole = {"steps": [{"type": "text", "deltas": ["1 2 3"]}]}
    blue = {"steps": [{"type": "text", "deltas": ["Blue"]}]}
    silent = {"steps": [{"type": "text", "deltas": ["391"]}]}
    configured(whole, CALLED, blue, silent, WRITTEN, WRITTEN)
    code, out, _ = live.zotctl("models", "check", MODEL, "--json")
    found, ok = outcomes(out)
    assert found == {
        "stream": "unclear",
        "tools": "yes",
        "images": "unclear",
        "reasoning": "unclear",
        "caching": "unclear",
    }
    assert (code, ok) == (0, True)


def test_a_check_ends_when_there_is_no_answer_at_all(live, configured):
    configured({"status": 401, "message": "no"})
    code, out, _ = live.zotctl("models", "check", MODEL)
    assert code == 1
    assert "check the API key" in out
    assert "tools" not in out


def test_a_check_without_a_key_is_a_verdict_too(live):
    live.shell.env.pop("OPENAI_API_KEY", None)
    code, out, _ = live.zotctl("models", "check", MODEL, "--json")
    assert code == 1
    assert "no key for OpenAI" in out


def test_what_the_configuration_rules_out_is_not_asked(live, configured):
    row = '[[models]]\nprovider = "ollama"\nid = "blind"\nimages = false\ntools = false\n'
    url = live.scripted(COUNTED)
    (live.home / "config.toml").write_text(f'[providers.ollama]\nbase_url = "{url}"\n{row}')
    live.daemon.end()
    live.daemon.start()
    code, out, _ = live.zotctl("models", "check", "ollama/blind", "--only", "stream,tools,images,reasoning", "--json")
    assert outcomes(out)[0] == {"stream": "yes", "tools": "off", "images": "off", "reasoning": "off"}
    assert code == 1  # an agent without tools


def test_bad_usage_of_a_check_is_told(live):
    code, _, err = live.zotctl("models", "check", "--only", "smell")
    assert (code, "choose from stream, tools" in err) == (2, True)
    code, _, err = live.zotctl("models", "check", "m", "--provider", "nobody")
    assert code == 1
    assert 'unknown provider "nobody"' in err


def test_a_model_is_shown_with_its_limits_prices_address_and_key(live, configured):
    configured()
    code, out, _ = live.zotctl("models", "show", "claude-sonnet-4-5")
    assert code == 0
    shown = {line.split()[0]: line.split(maxsplit=1)[1] for line in out.splitlines()}
    assert shown["model"] == "claude-sonnet-4-5"
    assert shown["provider"] == "anthropic (Anthropic)"
    assert shown["address"] == "https://api.anthropic.com"
    assert shown["context"] == "200,000 tokens"
    assert shown["prices"].startswith("input 3, output 15, cache read 0.3, cache write 3.75 USD")
    assert shown["key"].startswith("none; set ANTHROPIC_API_KEY")
    found = json.loads(live.zotctl("models", "show", MODEL, "--json")[1])
    assert found["key"]["source"] == "environment"  # of the shell: the daemon has none
    assert found["info"]["ready"]
    assert "sk-of-the-shell" not in str(found) + live.daemon.log


def test_a_vendor_that_lacks_a_setting_says_which(live):
    _, out, _ = live.zotctl("models", "show", "azure/my-deployment")
    assert "set AZURE_OPENAI_RESOURCE" in out
    live.shell.env["AZURE_OPENAI_RESOURCE"] = "house"
    _, out, _ = live.zotctl("models", "show", "azure/my-deployment")
    assert "https://house.openai.azure.com/openai/v1" in out
    assert "missing" not in out
    assert "the catalog does not know this model" in out


def test_the_list_has_current_models_and_with_all_every_one(live, configured):
    configured()
    current = json.loads(live.zotctl("models", "list", "--provider", "openai", "--json")[1])["models"]
    every = json.loads(live.zotctl("models", "list", "--provider", "openai", "--all", "--json")[1])["models"]
    assert {one["provider"] for one in every} == {"openai"}
    assert not any(one["superseded"] for one in current)
    assert [one["id"] for one in every if one["superseded"]]
    assert all(one["ready"] for one in every)  # the shell has a key
    head, *rows = live.zotctl("models", "list", "--all")[1].splitlines()
    assert head.split() == ["PROVIDER", "MODEL", "CONTEXT", "OUTPUT"]
    assert any(row.split()[0] == "anthropic" and "no key" in row for row in rows)
    assert any("superseded" in row for row in rows)


def test_the_model_used_last_is_the_first_of_the_list_also_after_a_restart(live, configured):
    configured()
    live.session(live.model("hi"), provider="openai", model="gpt-4o")
    live.daemon.end()
    live.daemon.start()
    first, *_ = json.loads(live.zotctl("models", "list", "--json")[1])["models"]
    assert (first["provider"], first["id"]) == ("openai", "gpt-4o")


def test_models_are_completed_with_their_provider(live, configured):
    configured()
    code, out, _ = live.zotctl("candidates", "zotctl", "--", "models", "show", "ollama")
    assert code == 0
    live.session(live.model("hi"), provider="ollama", model="qwen3")
    out = live.zotctl("candidates", "zotctl", "--", "models", "show", "ollama/")[1]
    assert out.split() == ["ollama/qwen3"]
