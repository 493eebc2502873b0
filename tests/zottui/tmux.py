"""A program in a terminal of its own, as a person sees it: tmux without a client attached.

The program starts when everything that it writes is recorded. Nothing here has an event to wait for, because what is on a
screen is asked of tmux; so there is one place that asks again and again, with one limit.
"""

import contextlib
import os
import re
import select
import shlex
import signal
import subprocess
import time
import uuid
from pathlib import Path

from tests.needs import needs

WAIT_S = 60.0
"""How long something may take to appear; a machine that is busy with the other tests is slow."""

POLL_S = 0.03

ALTERNATE = re.compile(rb"\x1b\[\?(?:1049|1047|47)h.*?\x1b\[\?(?:1049|1047|47)l", re.DOTALL)

OPTIONS = (
    "set -g default-terminal tmux-256color",
    "set -g status off",
    "set -g history-limit 50000",
    "set -g remain-on-exit on",
    "set -g remain-on-exit-format ''",
    "set -s set-clipboard on",
    "set -s escape-time 0",
    "set -g monitor-bell on",
    "set -g focus-events on",
)


class Tmux:
    """One window with one program in it.

    At the end the server is gone, and so is the program; it must never have erased the scrollback (`CSI 3 J`), nor the
    screen (`CSI 2 J`) outside of the alternate one.
    """

    def __init__(self, command, *, folder, env, columns=100, rows=30):
        """`command`: arguments; `folder`: where it runs, and where the record of what it writes is kept."""
        needs("tmux")
        self._command, self._folder, self._env = command, Path(folder), env
        self._size = columns, rows
        self._name = f"zot-{uuid.uuid4().hex[:12]}"
        self._record = self._folder / f"{self._name}.raw"

    def __enter__(self):
        columns, rows = self._size
        start = f"tmux -L {self._name} wait-for start; exec {shlex.join(map(str, self._command))}"
        options = [word for option in OPTIONS for word in (*shlex.split(option), ";")]
        # -u: UTF-8 whatever the locale is.
        self.tmux(
            *("-u", "-f", "/dev/null", "start-server", ";", *options),
            *("new-session", "-d", "-x", columns, "-y", rows, "-c", self._folder, start),
        )
        self._server, self._program = map(int, self.ask("#{pid} #{pane_pid}").split())
        self._socket = Path(self.ask("#{socket_path}"))
        record, recorder, done = (shlex.quote(f"{self._record}{end}") for end in ("", ".pid", ".done"))
        self.tmux("pipe-pane", "-O", f"sh -c 'echo $$ > \"$0\"; exec cat' {recorder} > {record}; : > {done}")
        self.until(self._recorder, "the recorder")
        self.tmux("wait-for", "-S", "start")
        return self

    def __exit__(self, kind, error, trace):
        ends = [os.pidfd_open(pid) for pid in (self._server, self._program) if Path(f"/proc/{pid}").exists()]
        self.tmux("kill-server")
        try:
            for end in ends:
                assert select.select([end], [], [], 5)[0], "the program outlives its terminal"
        finally:
            for end in ends:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(end, signal.SIGKILL)
                os.close(end)
            self._socket.unlink(missing_ok=True)
        until(Path(f"{self._record}.done").exists, lambda: "the record is not complete")
        if error is None:
            assert b"\x1b[3J" not in self.raw(), "the scrollback was erased"
            assert b"\x1b[2J" not in ALTERNATE.sub(b"", self.raw()), "the screen was erased"

    def tmux(self, *words):
        """What a tmux command prints."""
        command = ["tmux", "-L", self._name, *map(str, words)]
        done = subprocess.run(command, env=self._env, capture_output=True, text=True, timeout=WAIT_S, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def ask(self, what):
        """The value of a format: `#{pane_title}`, `#{alternate_on}`."""
        return self.tmux("display-message", "-p", what).rstrip("\n")

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def key(self, *names):
        """Press keys by the names that tmux has for them: `Enter`, `C-l`, `M-Enter`, `Up`."""
        self.tmux("send-keys", *names)

    def send_hex(self, *codes):
        """Send bytes: `send_hex("1b", "5b", "49")`."""
        self.tmux("send-keys", "-H", *codes)

    def paste(self, text):
        """Paste it, bracketed when the program has asked for that."""
        subprocess.run(
            ["tmux", "-L", self._name, "load-buffer", "-b", "pasted", "-"],
            env=self._env, input=text, text=True, timeout=WAIT_S, check=True,
        )  # fmt: skip
        self.tmux("paste-buffer", "-p", "-d", "-b", "pasted")

    def resize(self, columns, rows):
        self.tmux("resize-window", "-x", columns, "-y", rows)

    def screen(self, *, colours=False):
        """What is on the screen, without blank lines at the end; wrapped lines as they are shown."""
        return self.tmux("capture-pane", "-p", *(["-e"] if colours else [])).rstrip("\n")

    def history(self):
        """The scrollback and the screen, with wrapped lines joined."""
        return self.tmux("capture-pane", "-p", "-J", "-S", "-").rstrip("\n")

    @property
    def cursor(self):
        """(column, row), from 0."""
        x, y = self.ask("#{cursor_x} #{cursor_y}").split()
        return int(x), int(y)

    @property
    def exit_code(self):
        """Of the program; None while it runs."""
        is_dead, code = self.ask("#{pane_dead} #{pane_dead_status}").split(" ")
        if is_dead == "1" and not code:
            os.kill(self._server, signal.SIGCHLD)  # tmux 3.3a misses this signal now and then
        return int(code) if code else None

    def raw(self):
        """Every byte that the program has written of what is on the screen."""
        # tmux shows bytes before it hands them to the recorder. Its loop has written them to the socket when it has answered
        # twice, and the recorder has read them all when it waits for more.
        if not Path(f"{self._record}.done").exists():
            self.ask("#{pid}"), self.ask("#{pid}")
            self.until(self._recorder_waits, "the end of what is recorded")
        return self._record.read_bytes()

    def _recorder(self):
        with contextlib.suppress(FileNotFoundError, ValueError):
            return int(Path(f"{self._record}.pid").read_text())
        return None

    def _recorder_waits(self):
        try:
            state = Path(f"/proc/{self._recorder()}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        return state == "S"

    def wait(self, pattern, *, where="screen"):
        """Wait until the regular expression is found on the screen, or in the `history`; the match."""

        def seen():
            return re.search(pattern, getattr(self, where)(), re.MULTILINE)

        return self.until(seen, f"/{pattern}/")

    def until(self, seen, what):
        """Wait until `seen()` is true; what it is."""
        return until(seen, lambda: f"{what} did not come; the screen is:\n{self.screen()}")


def until(seen, complaint):
    """Ask again and again until `seen()` is true; what it is."""
    deadline = time.monotonic() + WAIT_S
    while not (found := seen()):
        assert time.monotonic() < deadline, complaint()
        time.sleep(POLL_S)
    return found
