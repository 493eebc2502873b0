"""Which daemons forward clients, and what they need for it."""

import pytest

from zotd.api.fleet.joining import joined
from zotd.config import ConfigError, FleetSection
from zotd.fleet_key import FILE


class Members:
    def __init__(self, home="home"):
        self.home = home
        self.announced = []

    def announce(self, address):
        self.announced.append(address)


@pytest.fixture
def key(tmp_path):
    """The key in the home."""
    path = tmp_path / FILE
    path.write_text("k" * 40)
    path.chmod(0o600)
    return path


def join(home, members, **settings):
    return joined(home, FleetSection(**settings), certificate="", members=members, spawn=lambda *_: None)


def test_a_daemon_without_a_key_or_without_others_forwards_nothing(tmp_path, key):
    assert join(tmp_path, Members("")) is None
    key.unlink()
    assert join(tmp_path, Members()) is None


def test_a_key_or_an_address_that_cannot_be_used_is_an_error_of_the_configuration(tmp_path, key):
    with pytest.raises(ConfigError, match=r"fleet key file .* cannot be read"):
        join(tmp_path, Members(), key_file=str(tmp_path / "none"))
    with pytest.raises(ConfigError, match=r"fleet\.address ws://box:1 must begin with wss://"):
        join(tmp_path, Members(), address="ws://box:1")
    key.chmod(0o644)
    with pytest.raises(ConfigError, match="chmod 600"):
        join(tmp_path, Members())


@pytest.mark.parametrize(
    ("address", "door", "announced"),
    [
        (None, "wss://10.0.0.1:7777/v1", "wss://10.0.0.1:7777/v1"),
        ("wss://box:7777", "wss://0.0.0.0:7777/v1", "wss://box:7777"),
        (None, "wss://0.0.0.0:7777/v1", None),
        ("wss://box:7777", None, None),
    ],
)
def test_the_others_are_told_an_address_that_they_can_reach_or_the_user_what_is_missing(
    tmp_path, key, address, door, announced
):
    members = Members()
    fleet = join(tmp_path, members, address=address)
    assert fleet is not None
    warnings = fleet.announce(address, door)
    assert members.announced == [announced] * (announced is not None)
    assert len(warnings) == (announced is None)
