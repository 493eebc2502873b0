"""Programs started with the words of a jail: own directories, revealed secrets, and starts that are refused."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.jail.conftest import KEY
from tests.needs import needs
from zotd.jail import MECHANISMS, JailError, Mechanism, Network
from zotd.jail.mechanisms import find_jail
from zotd.jail.site import JailSite


@pytest.fixture(params=MECHANISMS)
def program(request, person):
    """Runs shell commands as a program with a data directory in `$ZOT_HOME`, which changes no other directory."""
    if request.param is Mechanism.BUBBLEWRAP:
        needs("bwrap")
    data = person.home / ".zot" / "data" / "notes"
    data.mkdir(parents=True)

    def run(command, *, cwd=person.work, site=None):
        revealed = (str(person.home / ".ssh"), str(person.home / ".config" / "gcloud" / "credentials.db"))
        own = JailSite(str(data), person.env, Network.OFF, own=(str(data),), revealed=revealed)
        jail = find_jail(own if site is None else site, [request.param])
        try:
            words = jail.words()
        finally:
            jail.close()
        argv = [*words, "/bin/sh", "-c", command]
        done = subprocess.run(
            argv, cwd=cwd, env={**person.env, "ITS": "value"}, capture_output=True, text=True, check=False
        )
        return done.stdout, done.returncode

    return SimpleNamespace(run=run, data=data, mechanism=request.param)


def test_it_changes_its_own_directory_though_that_lies_in_something_hidden(program):
    assert program.run(f"echo x > {program.data}/f; cat {program.data}/f") == ("x\n", 0)


def test_it_cannot_change_the_directory_that_it_is_started_in(program, person):
    (person.work / "file").write_text("theirs")
    assert program.run("pwd -P; cat file; echo x > file || echo refused") == (f"{person.work}\ntheirsrefused\n", 0)
    assert (person.work / "file").read_text() == "theirs"


def test_it_keeps_its_environment(program):
    assert program.run("echo $ITS $HOME")[0] == f"value {program.data.parents[2]}\n"


def test_it_reads_what_was_revealed_and_no_other_secret(program, person):
    (person.home / ".config" / "gcloud" / "other").write_text(KEY)
    assert program.run("cat ~/.ssh/id ~/.config/gcloud/credentials.db")[0] == 2 * KEY
    assert program.run("cat ~/.zot/auth.json ~/.config/gcloud/other ~/.netrc")[0] == ""
    assert program.run("echo x > ~/.ssh/id")[1] != 0
    assert (person.home / ".ssh" / "id").read_text() == KEY


def test_what_zot_keeps_cannot_be_revealed(program, person):
    for path in (".zot", ".zot/auth.json", "."):
        site = JailSite(
            str(program.data),
            person.env,
            Network.OFF,
            own=(str(program.data),),
            revealed=(str(person.home / path),),
        )
        assert program.run("cat ~/.zot/auth.json", site=site)[0] == ""


def test_a_program_that_cannot_be_run_is_named(program):
    # Else the checkout may be in a directory that the program may change, which is refused.
    env = {**os.environ, "TMPDIR": str(program.data)}
    jail = find_jail(JailSite(str(program.data), env, Network.OFF, own=(str(program.data),)), [program.mechanism])
    done = subprocess.run([*jail.words(), "/no/such"], capture_output=True, text=True, check=False)
    jail.close()
    assert done.returncode in {1, 127}
    assert "/no/such" in done.stderr


def test_nothing_runs_if_landlock_refuses_its_rules(person, tmp_path):
    """The policy hides a file in a directory that may be changed, which Landlock cannot."""
    jail = person.jail(Mechanism.LANDLOCK)
    words = jail.words()
    jail.close()
    words[-1] = words[-1].replace('"hidden":[', f'"hidden":["{person.work}/file",')
    done = subprocess.run([*words, "/usr/bin/touch", "made"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "would not be confined" in done.stderr) == (126, True)
    assert not (tmp_path / "made").exists()


def test_there_are_no_words_if_the_program_could_change_what_confines_it(person, monkeypatch):
    jail = person.jail(Mechanism.LANDLOCK)
    monkeypatch.setattr(sys, "executable", str(person.work / "python"))
    with pytest.raises(JailError, match="may change"):
        jail.words()
    jail.close()
