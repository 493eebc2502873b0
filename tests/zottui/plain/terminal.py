"""`zot` on a real terminal."""

import os
import pty
import signal
import subprocess
from contextlib import contextmanager

from zotd.testing import warm


class Terminal:
    """A chat, and what is on its screen."""

    def __init__(self, process, screen):
        self.process = process
        self.screen = screen
        self.seen = ""

    def type(self, text):
        os.write(self.screen, text.encode())

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)

    def until(self, text):
        """Read until `text` is there; what came up to it."""
        while text not in self.seen:
            self.seen += os.read(self.screen, 4096).decode().replace("\r\n", "\n")
        before, _, self.seen = self.seen.partition(text)
        return before

    def end(self):
        """The exit code, and the rest of the screen."""
        code = self.process.wait(40)
        os.set_blocking(self.screen, False)
        try:
            while data := os.read(self.screen, 4096):
                self.seen += data.decode().replace("\r\n", "\n")
        except OSError:  # nothing more, or the other side is closed
            pass
        return code, self.seen


@contextmanager
def chat(folder, *args, env):
    """A chat in this directory, killed in the end."""
    screen, terminal = pty.openpty()
    command = warm.command("zotd.cli", "--plain", *args)
    with subprocess.Popen(
        command, cwd=folder, env=env, start_new_session=True, stdin=terminal, stdout=terminal, stderr=terminal
    ) as process:
        os.close(terminal)
        try:
            yield Terminal(process, screen)
        finally:
            process.kill()
            os.close(screen)
