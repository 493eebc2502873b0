"""`zotctl audit`."""

import json


def test_decisions_are_shown_newest_first(live):
    assert live.zotctl("token", "create", "phone", "--role", "read")[0] == 0
    assert live.zotctl("token", "revoke", "phone")[0] == 0
    code, out, _ = live.zotctl("audit")
    assert code == 0
    head, revoked, created = out.splitlines()
    assert head.split() == ["TIME", "WHO", "COMMAND", "SESSION", "DETAILS", "OUTCOME"]
    assert "token.revoke" in revoked
    assert "name=phone role=read" in created
    assert revoked.endswith("done")


def test_decisions_are_filtered_and_printed_as_json(live):
    live.zotctl("token", "create", "phone", "--role", "read")
    live.zotctl("token", "revoke", "phone")
    found = json.loads(live.zotctl("audit", "--command", "token.create", "--json")[1])
    assert (found["v"], [one["command"] for one in found["entries"]]) == (1, ["token.create"])
    assert len(json.loads(live.zotctl("audit", "--limit", "1", "--json")[1])["entries"]) == 1
    assert live.zotctl("audit", "--limit", "0")[::2] == (1, "zotctl: --limit 0: it must be at least 1\n")
