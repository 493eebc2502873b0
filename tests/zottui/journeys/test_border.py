"""The border of the mode `workspace` in the terminal: what asks there, and for how long an answer holds."""

from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.jail.conftest import files
from tests.needs import needs
from tests.zottui.journeys.deciding import decide
from tests.zottui.journeys.test_undo import type_line
from tests.zottui.journeys.world import rests
from zotd.testing.script import CallPart, TextPart

WORKSPACE = "--mode", "workspace"


@contextmanager
def site(folder):
    """A server outside of the jail, at an address that is allowed nowhere by default."""
    needs("bwrap", "curl")
    (folder / "page").write_text("what the host says")
    with files(folder) as port:
        yield f"127.0.0.3:{port}"


def fetches(world, host, *answers):
    """For each answer, let the model fetch the page in a run that ends with it."""
    for answer in answers:
        call = CallPart("bash", {"command": f"curl -sS --fail http://{host}/page"})
        world.model.says([call], [TextPart([answer])])


@pytest.fixture
def user(world):
    """The home directory of the person, which is outside of the working directory."""
    return Path(world.env["HOME"])


def test_a_host_that_is_allowed_for_the_session_is_not_asked_about_again(world, tmp_path):
    with site(tmp_path) as host:
        fetches(world, host, "fetched once", "fetched twice")
        zot = world.zot(*WORKSPACE)
        type_line(zot, "go")
        zot.wait("network needs you")
        decide(zot, "s", "fetched once")
        rests(zot)
        type_line(zot, "again")
        zot.wait("fetched twice")
    assert world.model.seen().count("what the host says") == 2


def test_a_host_that_is_refused_is_not_reached_and_the_model_is_told(world, tmp_path):
    with site(tmp_path) as host:
        fetches(world, host, "then not")
        zot = world.zot(*WORKSPACE)
        type_line(zot, "go")
        zot.wait("network needs you")
        decide(zot, "n", "then not")
    assert "what the host says" not in world.model.seen()
    assert host in world.model.seen()
    assert "denied" in world.run("zotctl", "sandbox", "log")


def test_a_host_that_is_always_allowed_is_reached_by_the_next_session(world, tmp_path):
    with site(tmp_path) as host:
        fetches(world, host, "fetched once", "fetched elsewhere")
        zot = world.zot(*WORKSPACE)
        type_line(zot, "go")
        zot.wait("network needs you")
        decide(zot, "a", "save this rule|which")
        decide(zot, "y", "fetched once")
        other = world.zot(*WORKSPACE)
        type_line(other, "go")
        other.wait("fetched elsewhere")
    assert "[[rules]]" in (world.home / "config.toml").read_text()


def test_a_write_outside_of_the_workspace_waits_for_the_person(world, user):
    world.model.says([CallPart("write", {"path": "~/notes.txt", "content": "outside\n"})], "noted")
    zot = world.zot(*WORKSPACE)
    type_line(zot, "go")
    zot.wait("write needs you")
    assert not (user / "notes.txt").exists()
    decide(zot, "y", "^noted$")
    assert (user / "notes.txt").read_text() == "outside\n"


def test_a_secret_is_read_only_when_the_person_allows_it(world, user):
    (user / ".ssh").mkdir()
    (user / ".ssh" / "id").write_text("the private key")
    world.model.says([CallPart("read", {"path": "~/.ssh/id"})], "then not")
    zot = world.zot(*WORKSPACE)
    type_line(zot, "go")
    zot.wait("read needs you")
    decide(zot, "n", "^then not$")
    assert "the private key" not in world.model.seen()


def test_what_bash_changes_elsewhere_fails_and_the_workspace_stays_writable(world, user):
    needs("bwrap")
    (user / ".bashrc").write_text("before\n")
    command = "echo here > made; echo evil >> ~/.bashrc"
    world.model.says([CallPart("bash", {"command": command})], "I see")
    zot = world.zot(*WORKSPACE)
    type_line(zot, "go")
    zot.wait("files needs you")
    decide(zot, "n", "^I see$")
    assert ((user / ".bashrc").read_text(), (world.cwd / "made").read_text()) == ("before\n", "here\n")
    assert f"change {user}/.bashrc" in world.model.seen()
