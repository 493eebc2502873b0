import pytest

from zotd.channels.pairing import (
    CODE_BYTES,
    KEPT_S,
    LIFE_S,
    MAX_GUESSES,
    MAX_OFFERS,
    Address,
    Pairing,
    TooManyGuessesError,
)

ADA = Address("telegram", "7")


def offer(pairing, address=ADA, now=0.0, seed=1):
    return pairing.offer(address, {"chat": 1}, now=now, randomness=seed.to_bytes(CODE_BYTES, "big"))


def test_a_code_lets_in_once():
    pairing = Pairing()
    code = offer(pairing).code
    assert pairing.redeem(f" {code.lower()} ", now=1) is not None
    assert pairing.redeem(code, now=2) is None


def test_a_code_may_be_typed_without_its_dash():
    pairing = Pairing()
    found = pairing.redeem(offer(pairing).code.replace("-", ""), now=1)
    assert found is not None
    assert (found.address, found.metadata) == (ADA, {"chat": 1})


def test_a_stranger_is_told_again_when_the_code_is_too_old():
    pairing = Pairing()
    first = offer(pairing)
    assert offer(pairing, now=LIFE_S - 1) is None
    second = offer(pairing, now=LIFE_S, seed=2)
    assert pairing.redeem(first.code, now=LIFE_S) is None
    assert pairing.redeem(second.code, now=LIFE_S) is not None


def test_strangers_cannot_make_a_flood_and_one_channel_not_block_another():
    pairing = Pairing()
    offers = [offer(pairing, Address(f"chat/{room}", "x"), seed=room + 1) for room in range(MAX_OFFERS + 5)]
    assert sum(one is not None for one in offers) == MAX_OFFERS
    assert offer(pairing, seed=99) is not None


def test_who_guesses_gets_nowhere():
    pairing = Pairing()
    code = offer(pairing).code
    for _ in range(MAX_GUESSES):
        assert pairing.redeem("AAAA-AAAA", now=1) is None
    with pytest.raises(TooManyGuessesError):
        pairing.redeem(code, now=2)
    assert pairing.redeem(code, now=LIFE_S + 1) is None, "void since the last guess"
    assert pairing.open(1) == []


def test_codes_differ_in_every_bit_of_their_randomness():
    codes = {offer(Pairing(), seed=1 << bit).code for bit in range(8 * CODE_BYTES)}
    assert len(codes) == 8 * CODE_BYTES


def test_a_crowd_of_strangers_delays_a_pairing_by_a_minute_at_most():
    pairing = Pairing()
    for number in range(MAX_OFFERS):
        assert offer(pairing, Address("telegram", f"s{number}"), seed=number + 1) is not None
    assert offer(pairing, now=KEPT_S - 1, seed=99) is None
    found = offer(pairing, now=KEPT_S, seed=99)
    assert found is not None
    assert pairing.redeem(found.code, now=KEPT_S + 1) is not None
    assert len(pairing.open(KEPT_S + 1)) == MAX_OFFERS - 1
