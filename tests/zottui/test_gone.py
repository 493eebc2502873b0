"""The terminal disappears under the client."""

import os
import pty
import subprocess

from tests.zottui.journeys.world import ZOT
from tests.zottui.journeys.world import world as made


def test_a_client_ends_without_a_signal_when_its_terminal_is_gone(tmp_path):
    with made(tmp_path) as world:
        gate = world.model.gate()
        world.model.says([gate])
        screen, terminal = pty.openpty()
        # Without a session of its own the kernel sends no SIGHUP: the terminal is just not there any more.
        command = [*ZOT, "go on for ever"]
        with subprocess.Popen(
            command, cwd=world.cwd, env=world.env, stdin=terminal, stdout=terminal, stderr=terminal
        ) as client:
            os.close(terminal)
            seen = b""
            while b"for ever" not in seen or not world.model.requests:
                seen += os.read(screen, 4096)
            os.close(screen)
            assert client.wait(20) == 1
        world.model.open(gate)
