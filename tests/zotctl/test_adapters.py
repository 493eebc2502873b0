"""`zotctl adapters`, and sessions of other agents on the command line."""

import json
import sys


def test_known_adapters_are_listed_with_what_is_installed(live):
    (live.home / "config.toml").write_text(f'[adapters.mine]\ncommand = ["{sys.executable}", "--acp"]\n')
    code, out, _ = live.zotctl("adapters", "--json")
    found = {one["name"]: one for one in json.loads(out)["adapters"]}
    assert code == 0
    assert found["mine"]["program"] == sys.executable
    assert found["claude"]["install"] == "npm install -g @agentclientprotocol/claude-agent-acp"


def test_the_table_says_how_to_install_the_others(live):
    code, out, _ = live.zotctl("adapters")
    assert code == 0
    assert out.splitlines()[0].split()[:2] == ["NAME", "AGENT"]


def test_a_prompt_is_answered_by_another_agent(live):
    command = json.dumps([sys.executable, "-m", "zotd.testing.odd_agent"])
    (live.home / "config.toml").write_text(f"[adapters.odd]\ncommand = {command}\n")
    assert live.zotctl("reload")[0] == 0
    assert live.zot("-p", "--agent", "odd", "hello there") == (0, "hello there \n", "")
    assert live.zot("-p", "-c", "and again") == (0, "and again \n", "")
    assert live.zot("-p", "-c", "--agent", "odd", "more") == (
        1,
        "",
        "zot: --agent odd needs a session of its own; leave out -c, --resume and --session\n",
    )
