"""`zotctl agents`."""

import json


def test_types_are_listed_with_what_is_wrong_with_others(live, tmp_path):
    folder = live.home / "agents"
    folder.mkdir(parents=True)
    (folder / "a.md").write_text(
        "---\nname: reviewer\ndescription: Reviews.\ntools: Read\ncolor: red\n---\nYou review."
    )
    code, out, err = live.zotctl("agents", str(tmp_path))
    assert (code, [line.split() for line in out.splitlines()]) == (
        0,
        [
            ["NAME", "SOURCE", "MODE", "MODEL", "TOOLS", "DESCRIPTION"],
            ["reviewer", "$ZOT_HOME/agents", "-", "-", "Read", "Reviews."],
        ],
    )
    assert "color has no effect in zot" in err
    (folder / "b.md").write_text("---\nname: other\n---\nYou look.")
    code, out, _ = live.zotctl("agents", str(tmp_path), "--json")
    found = json.loads(out)
    assert (code, [one["name"] for one in found["agents"]]) == (1, ["reviewer"])
    assert "it has no description" in found["problems"][0]
