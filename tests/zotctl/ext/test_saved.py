"""`zotctl ext reload --watch`, in the real daemon."""

import os
import pty
import signal

from tests.zotctl.live import ECHO


def test_an_extension_is_reloaded_when_a_file_in_its_directory_is_saved(live):
    directory = live.write("echo", ECHO + "\nimport words\n")
    (directory / "words.py").write_text("WORD = 'first'\n")
    source = directory / "main.py"
    source.write_text(source.read_text().replace("Display(args.upper())", "Display(words.WORD)"))
    session = live.session()
    live.until("echo", "ready")
    terminal, other_side = pty.openpty()
    process = live.shell.start("zotctl", "ext", "reload", "--watch", stderr=other_side)
    os.close(other_side)
    with process:
        assert b"watching echo" in os.read(terminal, 4096)
        assert live.command(session, "shout")["text"] == "first"
        (directory / "words.py").write_text("WORD = 'second'\n")
        assert process.stdout.readline() == "ready: echo\n"
        assert live.command(session, "shout")["text"] == "second"
        process.send_signal(signal.SIGINT)
        assert process.wait(40) == 130
    os.close(terminal)


def test_without_an_extension_in_a_directory_there_is_nothing_to_watch(live):
    tools = live.installed / "tools"
    tools.mkdir(parents=True)
    (tools / "one.py").write_text("def run() -> str:\n    'One.'\n    return '1'\n")
    live.session()
    code, _, err = live.zotctl("ext", "reload", "--watch")
    assert (code, "there is no extension with a directory of its own" in err) == (1, True)
