"""The jail of one session: made once, made again for another place, and said to be impossible once."""

import subprocess
import sys

import pytest

from tests.jail.conftest import person as person  # noqa: PLC0414  (a fixture)
from zotd.jail import Network
from zotd.jail.site import JailSite
from zotd.permissions.session_jail import SessionJail


@pytest.fixture
def told():
    return []


@pytest.fixture
def session(told):
    jail = SessionJail(told.append)
    yield jail
    jail.close()


def site(person, cwd="work", *, network=Network.OPEN, granted=()):
    return JailSite(str(person.home / cwd), person.env, network, granted=tuple(map(str, granted)))


async def test_it_is_made_once_for_the_same_place(session, person, told):
    first = await session.at(site(person))
    assert first is not None
    assert await session.at(site(person)) is first
    assert session.status == first.mechanism
    assert told == []


async def test_another_configuration_has_another_jail(session, person):
    first = await session.at(site(person))
    other = await session.at(site(person, network=Network.OFF))
    assert (first.policy.network, other.policy.network) == (Network.OPEN, Network.OFF)


async def test_a_call_that_is_about_to_start_keeps_its_jail_when_another_one_gets_a_grant(session, person, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")  # without bubblewrap: Landlock holds a descriptor
    first = await session.at(site(person))
    granted = person.root / "granted"
    granted.mkdir()
    for n in range(20):
        other = await session.at(site(person, granted=[granted] if n % 2 else []))
        assert other.policy.may_write(f"{granted}/x") == bool(n % 2)
    assert await person.run(first, "echo here") == ("here\n", 0)
    assert (await person.run(first, f"echo x > {granted}/x"))[1] == 1


async def test_what_became_possible_between_two_calls_is_in_the_policy(session, person):
    jail = await session.at(site(person))
    assert jail.policy.protected == ()
    (person.work / ".git" / "hooks").mkdir(parents=True)
    for name in ("HEAD", "config"):
        (person.work / ".git" / name).touch()
    policy = (await session.at(site(person))).policy
    assert not policy.may_write(str(person.work / ".git/hooks/pre-commit"))


async def test_each_reason_is_told_once(session, person, told):
    for cwd in (".", ".", ".ssh", ".ssh"):
        assert await session.at(site(person, cwd)) is None
    assert ["is your home directory" in text for text in told] == [True, False]
    assert "has to be hidden" in told[1]
    assert session.status.startswith("none: ")


async def test_a_place_where_none_was_possible_is_tried_again_after_another_one(session, person):
    (person.home / "other").symlink_to(person.work)
    assert await session.at(site(person, "other")) is None
    assert await session.at(site(person)) is not None
    (person.home / "other").unlink()
    (person.home / "other").mkdir()
    assert await session.at(site(person, "other")) is not None


async def test_a_jail_that_becomes_impossible_is_told(session, person, told):
    assert await session.at(site(person)) is not None
    (person.home / ".netrc").unlink()
    (person.home / ".netrc").symlink_to(person.work / "netrc")
    assert await session.at(site(person)) is None
    assert ["has to be hidden" in text for text in told] == [True]


def test_a_start_of_the_daemon_loads_no_mechanism():
    heavy = ("zotd.jail.mechanisms", "zotd.jail.computing", "zotd.jail.refusals")
    code = f"import sys, zotd.app; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
