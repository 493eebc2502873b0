"""The data of an extension: kept in its own directory across updates, restarts and trust; deleted only with --data."""

import json
import os
import pty
import signal

KEEPER = """
from pathlib import Path

@ext.on_hello
def start(host):
    global items
    items = Path(host.data_dir, "items.txt")

@ext.command("add")
def add(args):
    with items.open("a") as file:
        file.write(args + "\\n")
    return Display("added")

@ext.command("items")
def show(args):
    return Display(" ".join(items.read_text().split()) if items.exists() else "nothing")
"""


def shown(live, session):
    return live.command(session, "items")["text"]


def source(live):
    return live.cwd / "mine" / "keeper"


def installed(live, body=KEEPER, **fields):
    """An extension from a directory of the user's."""
    live.write("keeper", body, into=live.cwd / "mine", **fields)
    assert live.zotctl("ext", "install", str(source(live)))[0] == 0


def test_installing_again_updates_the_code_and_keeps_the_data(live):
    installed(live)
    session = live.session()
    live.command(session, "add", "milk")
    main = source(live) / "main.py"
    main.write_text(main.read_text().replace('" ".join', '"new: " + " ".join'))
    assert live.zotctl("ext", "install", str(source(live)))[0] == 0
    assert live.zotctl("ext", "reload", "--session", session)[0] == 0
    assert shown(live, session) == "new: milk"
    assert (live.home / "data" / "keeper").stat().st_mode & 0o777 == 0o700


def test_data_next_to_the_program_is_found_after_an_upgrade_and_copied_once(live):
    installed(live, data="beside")
    beside = live.installed / "keeper" / "items.txt"
    beside.write_text("milk\n")
    session = live.session()
    assert shown(live, session) == "milk"
    live.command(session, "add", "eggs")
    assert beside.read_text() == "milk\n", "nothing of it is deleted, and nothing more is written there"
    live.daemon.end(signal.SIGTERM)
    live.daemon.start()
    assert shown(live, live.session()) == "milk eggs"
    assert not (live.home / "data" / "keeper" / "main.py").exists()
    assert live.zotctl("ext", "install", str(source(live)))[0] == 0
    assert shown(live, live.session()) == "milk eggs"


def test_the_data_of_a_project_s_extension_does_not_change_its_trust(live):
    live.write("keeper", KEEPER, into=live.project)
    (live.project / "keeper" / "items.txt").write_text("milk\n")
    live.zotctl("trust", "grant", "--yes")
    session = live.session()
    assert shown(live, session) == "milk"
    live.command(session, "add", "eggs")
    (kept,) = (live.home / "data").glob("*@*/keeper/items.txt")
    assert kept.read_text() == "milk\neggs\n"
    listed = json.loads(live.zotctl("trust", "list", "--json")[1])
    assert [one["state"] for one in listed["workspaces"]] == ["trusted"]


def test_an_update_does_not_replace_what_an_extension_has_written_into_its_directory(live):
    installed(live, data="separate")
    (live.installed / "keeper" / "cache.bin").write_text("written")
    code, _, err = live.zotctl("ext", "install", str(source(live)))
    assert code == 1
    assert "cache.bin" in err
    assert "--force" in err
    assert (live.installed / "keeper" / "cache.bin").exists()
    code, out, _ = live.zotctl("ext", "install", "--force", str(source(live)))
    assert code == 0
    assert not (live.installed / "keeper" / "cache.bin").exists()
    (copy,) = (live.installed / ".removed").glob("keeper.*/cache.bin")
    assert str(copy.parent) in out


def test_remove_asks_first_and_reports_the_kept_data(live):
    installed(live)
    session = live.session()
    live.command(session, "add", "milk")
    code, _, err = live.zotctl("ext", "remove", "keeper")
    assert (code, err) == (
        1,
        "zotctl: cannot ask for confirmation without a terminal; to remove it, run: zotctl ext remove --yes keeper\n",
    )
    assert answered(live, "n", "keeper") == (1, "remove keeper and keep its data? [y/N] ")
    assert (live.installed / "keeper").exists()
    data = live.home / "data" / "keeper"
    code, out, _ = live.zotctl("ext", "remove", "--yes", "keeper")
    assert (code, out) == (0, f"keeper is removed; its data is still in {data}\n")
    assert live.zotctl("ext", "install", str(source(live)))[0] == 0
    assert live.zotctl("ext", "reload", "--session", session)[0] == 0
    assert shown(live, session) == "milk"
    assert answered(live, "y", "--data", "keeper") == (0, "remove keeper and delete its data? [y/N] ")
    assert not data.exists()


def answered(live, words, *flags):
    """Run remove on a terminal and answer its question; return the exit code and the question."""
    terminal, other_side = pty.openpty()
    with live.shell.start("zotctl", "ext", "remove", *flags, stdin=other_side, stderr=other_side) as process:
        os.close(other_side)
        said = ""
        while "[y/N] " not in said:
            said += os.read(terminal, 4096).decode()
        os.write(terminal, f"{words}\n".encode())
        process.communicate(timeout=40)
    os.close(terminal)
    return process.returncode, said
