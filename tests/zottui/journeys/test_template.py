"""The terminal client as a fork of a template process: the terminal, its shell and its user notice nothing."""

import os
import sys
import tempfile
from pathlib import Path

import psutil
import pytest

from tests.zottui.journeys.world import BIN, PROMPT
from zotd.template.client import SWITCH
from zotd.testing.warm import end_serving

SHELL = r"^[#$] ?$"
"""A shell that waits for a command."""

SMALL = 12 * 1024 * 1024
"""A process that has imported the client's modules has 30 MiB of its own."""


@pytest.fixture
def shell(world):
    """A shell whose `zot` is an installed one, and whose template process serves already."""
    with tempfile.TemporaryDirectory(prefix="zt-", dir="/tmp") as run:
        folder = world.folder / "bin"
        folder.mkdir()
        for name in ("zot", "zotctl"):
            script = folder / name
            script.write_text(
                f"#!{sys.executable}\nimport sys\nfrom zotd.template.client import {name}\nsys.exit({name}())\n"
            )
            script.chmod(0o755)
        editor = world.script("editor", 'tty > "$SEEN"; stty size < /dev/tty >> "$SEEN"; printf edited > "$1"')
        path = os.pathsep.join([str(folder), BIN, os.environ["PATH"]])
        env = {
            SWITCH: "",
            "XDG_RUNTIME_DIR": run,
            "PATH": path,
            "EDITOR": str(editor),
            "SEEN": str(world.folder / "seen"),
        }
        env["ZOTD_SOCKET"] = world.daemon.place.socket
        shell = world.shell(**env)
        try:
            shell.wait(SHELL)
            shell.type("zotctl completion bash > first; echo done")
            shell.key("Enter")
            shell.wait("^done$")
            shell.until(lambda: list(Path(run).glob("zot/template-*.sock")), "the template process")
            yield shell
        finally:
            end_serving(Path(run))


def begin(shell):
    """Start the client as a fork: the process that the shell waits for has imported nothing.

    The command starts cold if the template process does not accept it within `thin.START_S`, as on a busy machine.
    """
    for _ in range(5):
        shell.type("clear -x; zot")  # a prompt of the try before must not be taken for this one
        shell.key("Enter")
        shell.wait(PROMPT)
        client = psutil.Process(int(shell.ask("#{pane_pid}"))).children()[0]
        if client.memory_full_info().uss < SMALL:
            return
        shell.type("/exit")
        shell.key("Enter")
        shell.wait(SHELL)
    pytest.fail("the client was started cold five times")


def test_a_fork_is_stopped_and_continued_as_a_job_of_the_shell(shell):
    begin(shell)
    shell.type("first ")
    shell.wait("❯ first")
    shell.key("C-z")
    shell.wait("Stopped")
    shell.type("fg")
    shell.key("Enter")
    shell.wait("❯ first")
    shell.type("second")
    shell.wait("❯ first second")


def test_an_editor_has_the_terminal_and_its_size(world, shell):
    begin(shell)
    shell.type("draft")
    shell.wait("❯ draft")
    shell.key("C-g")
    shell.wait("❯ edited")
    assert (world.folder / "seen").read_text().split() == [shell.ask("#{pane_tty}"), "30", "100"]


def test_a_fork_follows_the_size_of_the_terminal(shell):
    begin(shell)
    shell.tmux("resize-window", "-x", "60", "-y", "20")
    shell.type("word " * 20)
    shell.until(lambda: max(map(len, shell.screen().split("\n"))) <= 60 and "❯ word" in shell.screen(), "60 columns")


def test_leaving_a_fork_returns_to_the_shell_with_its_exit_code(shell):
    begin(shell)
    shell.type("/exit")
    shell.key("Enter")
    shell.wait(SHELL)
    shell.type("echo code $?")
    shell.key("Enter")
    shell.wait("^code 0$")
