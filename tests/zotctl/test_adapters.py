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
