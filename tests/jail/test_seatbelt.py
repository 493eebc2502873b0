"""The jail of macOS: its rules as text, and the trial that a profile has to pass before it is used.

There is no macOS here. Programs stand in for `sandbox-exec`: one ignores its rules, one refuses to run, and one keeps the same policy
by Landlock, so that the trial is passed by a program that is really confined.
"""

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from zotd.jail import JailError, Mechanism, Network, confined, seatbelt
from zotd.jail.mechanisms import SeatbeltJail, find_jail
from zotd.jail.site import JailSite


def stand_in(person, script):
    """The path of a program to take for `sandbox-exec`."""
    program = person.root / "sandbox-exec"
    program.write_text(f"#!/bin/sh\nshift 2  # -p PROFILE\n{script}\n")
    program.chmod(0o755)
    return str(program)


def site(person, network=Network.OFF):
    return JailSite(str(person.work), person.env, network)


def jail_by(person, script, network=Network.OFF):
    return SeatbeltJail(site(person, network), stand_in(person, script))


def landlock(person, network=Network.OFF):
    words = confined.words(person.policy(network=network))
    return " ".join(f"'{word}'" for word in words) + ' "$@"'


def test_the_rules_of_a_policy(person):
    policy = replace(
        person.policy(),
        writable=("/w", "/tmp"),
        carved=("/w/.git",),
        protected=("/w/.git/hooks",),
        hidden=("/home/.ssh",),
        shown=("/home/.ssh/config",),
        own=("/zot/data/x",),
    )
    rules = seatbelt.profile(policy).splitlines()
    devices = " ".join(f'(subpath "{path}")' for path in seatbelt.DEVICES)
    assert rules[:8] == [
        "(version 1)",
        "(allow default)",
        '(deny file-write* (subpath "/"))',
        f'(allow file-write* {devices} (subpath "/w") (subpath "/tmp") (subpath "/w/.git"))',
        '(deny file-write* (subpath "/w/.git/hooks"))',
        '(deny file-read* file-write* (subpath "/home/.ssh"))',
        '(allow file-read* (subpath "/home/.ssh/config"))',
        '(allow file-read* file-write* (subpath "/zot/data/x"))',
    ]
    assert "(deny network*)" in rules


def test_with_an_open_network_only_sockets_that_are_files_are_closed(person):
    rules = seatbelt.profile(person.policy(network=Network.OPEN))
    assert "(deny network*)" not in rules
    assert "(deny network-outbound (remote unix-socket))" in rules


@given(st.text(st.characters(exclude_characters="\0\n"), max_size=20))
def test_no_path_ends_its_own_text(name):
    """What is not in a text of the language is one of its words, whatever the path contains."""
    rule = next(iter(seatbelt._rule("deny", "file-read*", [f"/{name}"])))
    assert re.sub(r'"(?:[^"\\]|\\.)*"', "TEXT", rule) == "(deny file-read* (subpath TEXT))"


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ('exec "$@"', "did not keep a trial from it, so it is not used: write to "),
        ("echo profile: unbound variable: lsopen >&2; exit 65", "unbound variable: lsopen"),
        ("exit 71", "failed with code 71"),
    ],
)
def test_a_program_that_does_not_keep_the_rules_is_not_used(person, script, reason):
    with pytest.raises(JailError, match=re.escape(reason)):
        jail_by(person, script)
    assert not list(person.home.glob(".zot-trial*"))


def test_one_that_leaves_the_network_open_is_not_used(person):
    with pytest.raises(JailError, match="so it is not used: connect to a port of this machine"):
        jail_by(person, landlock(person, Network.OPEN))


def test_one_that_refuses_too_much_is_not_used(person):
    policy = replace(person.policy(), writable=(str(person.work),))
    words = " ".join(f"'{word}'" for word in confined.words(policy))
    with pytest.raises(JailError, match="kept a trial from it, so it is not used: write to the temporary directory"):
        jail_by(person, words + ' "$@"')


def test_one_that_keeps_them_starts_commands(person):
    jail = jail_by(person, landlock(person))
    (person.work / "file").write_text("readable")
    script = "cat file; cat ../.ssh/id || echo refused; echo x > ../.bashrc || echo refused"
    process = jail.start(
        ["/bin/sh", "-c", script],
        lambda argv: subprocess.Popen(argv, cwd=person.work, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL),
    )
    assert process.communicate()[0] == b"readablerefused\nrefused\n"
    assert jail.mechanism is Mechanism.SEATBELT


def test_it_is_not_used_if_commands_could_change_it(person, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(person.work / "python"))
    with pytest.raises(JailError, match="is in a directory that commands may change"):
        jail_by(person, landlock(person))


def test_it_is_refused_where_it_does_not_exist(person):
    with pytest.raises(JailError, match="/usr/bin/sandbox-exec could not be run"):
        find_jail(site(person), [Mechanism.SEATBELT])
