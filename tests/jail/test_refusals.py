"""What is read from the output of a command in a jail."""

import pytest

from zotd.jail import Network
from zotd.jail.refusals import refused


@pytest.mark.parametrize(
    ("line", "clause"),
    [
        ("/bin/bash: line 1: {home}/.bashrc: Read-only file system", "change {home}/.bashrc"),
        ("touch: cannot touch '{home}/x': Permission denied", "change {home}/x"),
        ("touch: cannot touch \u2018{home}/x\u2019: Permission denied", "change {home}/x"),
        ("PermissionError: [Errno 13] Permission denied: '{home}/x'", "change {home}/x"),
        ("Error: EROFS: read-only file system, open '{home}/x'", "change {home}/x"),
        ("cat: {home}/.ssh/id: No such file or directory", "read {home}/.ssh/id"),
        ("cat: {home}/.ssh/id: Permission denied", "read {home}/.ssh/id"),
        ("curl: (6) Could not resolve host: example.org", "use the network"),
        ("socket.gaierror: [Errno -3] Temporary failure in name resolution", "use the network"),
    ],
)
def test_a_refusal_names_what_was_refused(person, line, clause):
    said = f"starting\n{line.format(home=person.home)}\n"
    assert refused(said, person.policy()) == [clause.format(home=person.home)]


@pytest.mark.parametrize(
    "line",
    [
        "cat: {home}/absent: No such file or directory",
        "cat: /proc/1/absent: Permission denied",
        "touch: cannot touch '{home}/work/x': Permission denied",
        "the file {home}/.bashrc is fine",
        "permission denied",
        "/bin/bash: connect: Permission denied",
    ],
)
def test_what_the_system_would_say_anyway_is_no_refusal(person, line):
    assert refused(line.format(home=person.home), person.policy()) == []


def test_with_the_network_a_host_that_cannot_be_resolved_is_no_refusal(person):
    assert refused("curl: (6) Could not resolve host: x", person.policy(network=Network.OPEN)) == []


def test_a_program_that_does_not_use_the_proxy_is_told_of_it(person):
    (clause,) = refused("ping: x: Temporary failure in name resolution", person.policy(network=Network.PROXIED))
    assert "HTTP_PROXY" in clause


def test_only_the_last_lines_count_and_few_refusals_are_named(person):
    lines = [f"touch: cannot touch '{person.home}/{n}': Permission denied" for n in range(1000)]
    assert refused("\n".join(lines), person.policy()) == [f"change {person.home}/{n}" for n in (800, 801, 802)]
