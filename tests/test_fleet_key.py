"""The key of the daemons of a database."""

import pytest

from zotd import fleet_key
from zotd.fleet_key import FleetKey, FleetKeyError


def stored(path, text, mode=0o600):
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_a_key_that_was_made_can_be_read(tmp_path):
    made = fleet_key.made()
    one, other = FleetKey.read(stored(tmp_path / "a", made + "\n")), FleetKey(made)
    assert one.caller_proof("home", "n", "") == other.caller_proof("home", "n", "")


@pytest.mark.parametrize(
    ("text", "mode", "reason"),
    [("short\n", 0o600, "fewer than 32"), ("", 0o600, "empty"), ("k" * 40, 0o640, "chmod 600")],
)
def test_a_file_that_is_no_key_is_refused_without_being_quoted(tmp_path, text, mode, reason):
    with pytest.raises(FleetKeyError, match=reason) as refused:
        FleetKey.read(stored(tmp_path / "key", text, mode))
    assert text.strip() == "" or text.strip() not in str(refused.value)


def test_a_proof_is_good_for_one_hello_of_one_side_to_one_daemon_with_one_certificate():
    key, other = FleetKey("k" * 40), FleetKey("l" * 40)
    proofs = [
        key.caller_proof("home", "nonce", "cert"),
        key.callee_proof("home", "nonce", "cert"),
        key.caller_proof("home2", "nonce", "cert"),
        key.caller_proof("home", "nonce2", "cert"),
        key.caller_proof("home", "nonce", "cert2"),
        key.caller_proof("hom", "enonce", "cert"),
        other.caller_proof("home", "nonce", "cert"),
    ]
    assert len(set(proofs)) == len(proofs)
