"""Encryption of push messages, by the example of RFC 8291."""

import pytest

from zotd.push import encryption
from zotd.push.encryption import key_of, public_of, sealed, to_bytes, to_text

MESSAGE = b"When I grow up, I want to be a watermelon"
OWN = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
PUBLIC = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
AUTH = "BTBZMqHH6r4Tts7J_aSIgg"
SALT = "DGv6ra1nlYgDCS1FRnbzlw"
BODY = (
    "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_"
    "yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
)


def test_the_example_of_the_standard_is_encrypted_as_it_says():
    assert to_text(sealed(MESSAGE, PUBLIC, AUTH, salt=to_bytes(SALT), own=key_of(OWN))) == BODY


def test_messages_of_any_length_look_the_same():
    bodies = [
        encryption.encrypted(message, PUBLIC, AUTH, salt=to_bytes(SALT), own=key_of(OWN)) for message in (b"", MESSAGE)
    ]
    assert len(bodies[0]) == len(bodies[1]) <= encryption.RECORD_BYTES


def test_a_key_is_restored_from_its_stored_form():
    key = encryption.new_key()
    assert public_of(key_of(key)) == public_of(key_of(key))
    assert len(public_of(key_of(key))) == encryption.POINT_BYTES


@pytest.mark.parametrize(
    ("public", "auth"),
    [(PUBLIC[:-4], AUTH), ("BAAA" + PUBLIC[4:], AUTH), (PUBLIC, AUTH[:-2]), ("", ""), ("!", AUTH), (PUBLIC, "é")],
)
def test_keys_that_are_not_a_browsers_are_refused(public, auth):
    with pytest.raises(ValueError, match=r".+"):
        encryption.check_receiver(public, auth)
