"""A command wants to reach an unknown host: it waits on the terminal, and goes on when another client allows it."""

from tests.jail.conftest import files
from tests.needs import needs
from tests.zottui.journeys.test_undo import type_line
from tests.zottui.journeys.world import rests
from zotd.testing.script import CallPart, TextPart


def test_an_unknown_host_is_allowed_by_another_client_and_curl_ends_well(world, tmp_path):
    needs("bwrap", "curl")
    (tmp_path / "page").write_text("what the host says")
    with files(tmp_path) as port:
        command = f"echo run >> runs; curl -sS http://127.0.0.3:{port}/page; echo; echo code $?"
        world.model.says([CallPart("bash", {"command": command})], [TextPart(["it is there"])])
        zot = world.zot("--mode", "workspace")
        type_line(zot, "go")
        zot.wait("network needs you")
        zot.wait(f"127.0.0.3:{port} is a loopback address")
        listed = world.run("zotctl", "approvals")
        assert f"$ {command}" in listed
        approval = listed.split()[0]
        assert f"{approval} is allowed" in world.run("zotctl", "approve", approval)
        zot.wait("approved by .*network", where="history")
        zot.wait("it is there")
        rests(zot)
    assert "what the host says" in world.model.seen()
    assert (world.cwd / "runs").read_text() == "run\n"
    assert f"127.0.0.3:{port}" in world.run("zotctl", "sandbox", "log")
