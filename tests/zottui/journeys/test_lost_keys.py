"""A session whose key the daemon has lost."""

import os
import signal

from tests.zottui.journeys.world import PROMPT, rests


def test_a_session_with_its_own_key_continues_after_its_daemon_was_killed(world):
    key = world.folder / "key"
    key.write_text("sk-of-this-session\n")
    key.chmod(0o600)
    world.model.says("all done", "and again")
    zot = world.zot("--provider", "openai", "--api-key-file", str(key))
    zot.wait(PROMPT)
    zot.type("go")
    zot.key("Enter")
    zot.wait("^all done$")
    rests(zot)
    os.kill(world.daemon.pid, signal.SIGKILL)
    world.daemon.wait()
    zot.type("again")
    zot.key("Enter")
    zot.wait("^and again$")
    assert {request.headers["Authorization"] for request in world.model.requests} == {"Bearer sk-of-this-session"}
