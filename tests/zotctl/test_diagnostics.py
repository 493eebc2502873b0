"""`zotctl diagnostics`."""

import json


def test_known_servers_are_listed_with_the_programs_that_a_project_has(live, tmp_path):
    program = tmp_path / ".venv" / "bin" / "pyright-langserver"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    code, out, _ = live.zotctl("diagnostics", str(tmp_path))
    lines = [line.split() for line in out.splitlines()]
    assert code == 0
    assert lines[0] == ["NAME", "STATE", "MEMORY", "FILES", "ROOT", "OR", "PROGRAM", "REASON"]
    assert ["pyright", "installed", "-", "-", str(program), "for", ".py", ".pyi"] in lines
    code, out, _ = live.zotctl("diagnostics", str(tmp_path), "--json")
    found = json.loads(out)
    assert (code, found["enabled"], found["servers"]) == (0, True, [])
    assert {"name": "pyright", "languages": [".py", ".pyi"], "program": str(program)} in found["known"]
