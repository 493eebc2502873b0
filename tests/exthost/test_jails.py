"""The words in front of an extension's command, and how its rights are described."""

import pytest

from tests.jail.conftest import person as person  # noqa: PLC0414  (a fixture)
from tests.needs import needs
from zotd.exthost.jails import ConfinedProgram, ConfinementError, ExtensionJails, rights
from zotd.wire.sandbox import SandboxRequest, WorkspaceAccess


def jails(**given):
    def spawn(name, work):
        work.close()
        raise AssertionError(f"{name} was started")

    return ExtensionJails(spawn, places={}, proxy=None, **given)


def program(person, sandbox, home=None):
    data = person.home / ".zot" / "data" / "notes"
    data.mkdir(parents=True, exist_ok=True)
    env = person.env if home is None else {**person.env, "HOME": str(home)}
    return ConfinedProgram("notes", sandbox, str(person.work), str(person.work), str(data), env)


async def test_a_home_that_is_reached_through_a_link_can_be_named_by_a_tilde(person):
    needs("bwrap")
    (person.home / "papers").mkdir()
    link = person.root / "link"
    link.symlink_to(person.home)
    words = await jails().words(program(person, SandboxRequest(write=("~/papers",)), link))
    assert str(person.home / "papers") in words


@pytest.mark.parametrize(
    ("sandbox", "reason"),
    [
        (SandboxRequest(write=("~/absent",)), "home/absent does not exist"),
        (SandboxRequest(write=("~/.ssh",)), "home/.ssh does not exist, is a link, or is never opened"),
        (SandboxRequest(read=("~/.zot/auth.json",)), "home/.zot/auth.json is never shown to programs"),
    ],
)
async def test_a_wish_that_cannot_be_granted_is_the_reason(person, sandbox, reason):
    needs("bwrap")
    with pytest.raises(ConfinementError, match=reason):
        await jails().words(program(person, sandbox))


async def test_nothing_is_confined_if_the_user_has_switched_it_off(person):
    assert await jails(is_on=lambda: False).words(program(person, SandboxRequest(write=("~/absent",)))) == []


def test_rights_are_one_clause():
    asked = SandboxRequest(WorkspaceAccess.WRITE, ("~/papers",), ("~/.aws",), "open")
    assert rights(asked) == "is confined: changes the workspace, ~/papers; reads ~/.aws; reaches every host"
    assert rights(SandboxRequest()) == "is confined: changes nothing but its own data; reaches no host"
    assert rights(None) == "runs with all your rights"
