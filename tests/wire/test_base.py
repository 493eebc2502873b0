"""Decoding bytes of unknown origin into a Struct, or an error of one sentence."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zotd.wire.api import Approve, Envelope, Hello, Prompt, Response
from zotd.wire.base import BadFrameError, convert, decode, encode

DEEP = 100_000

BAD_JSON = {
    "nothing": b"",
    "blank": b" \t\r",
    "cut": b'{"type":"pi',
    "two values": b"{} {}",
    "comma": b'{"type":"ping",}',
    "single quotes": b"{'type':'ping'}",
    "NaN": b'{"type":NaN}',
    "NaN in an unknown field": b'{"x":NaN}',
    "Infinity": b'{"x":Infinity}',
    "minus Infinity": b'{"x":-Infinity}',
    "deep lists": b'{"x":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep objects": b'{"x":' * DEEP + b"1" + b"}" * DEEP,
    "deep and cut": b'{"x":' + b"[" * DEEP,
    "lone high surrogate": b'{"type":"\\ud800"}',
    "lone low surrogate": b'{"type":"\\udc00 "}',
    "swapped surrogates": b'{"type":"\\udc00\\ud800"}',
    "lone surrogate in an unknown field": b'{"x":"\\ud800"}',
    "surrogate as bytes": b'{"type":"\xed\xa0\x80"}',
    "invalid UTF-8": b'{"type":"\xff"}',
    "invalid UTF-8 in an unknown field": b'{"x":"\xff"}',
    "invalid UTF-8 in a name": b'{"\xff":1}',
    "overlong UTF-8": b'{"x":"\xc0\xaf"}',
    "UTF-16": '{"type":"ping"}'.encode("utf-16"),
    "BOM": b'\xef\xbb\xbf{"type":"ping"}',
    "NUL in a string": b'{"type":"a\x00b"}',
    "NUL behind": b"{}\x00",
    "newline in a string": b'{"type":"a\nb"}',
    "bad escape": b'{"type":"\\x41"}',
    "leading zero": b'{"id":01}',
    "plus": b'{"id":+1}',
}

WRONG_SHAPE = {
    "list": (b"[]", "expected `object`, got `array`"),
    "string": (b'"ping"', "expected `object`, got `str`"),
    "number": (b"1", "expected `object`, got `int`"),
    "null": (b"null", "expected `object`, got `null`"),
    "true": (b"true", "expected `object`, got `bool`"),
    "type": (b'{"type":1}', "expected `str`, got `int` in `type`"),
    "id": (b'{"id":[]}', "expected `int | str | null`, got `array` in `id`"),
    "fraction": (b'{"id":1.5}', "expected `int | str | null`, got `float` in `id`"),
    "5,000 digits": (b'{"id":' + b"9" * 5000 + b"}", "integer value out of range in `id`"),
    "1e999": (b'{"id":1e999}', "number out of range in `id`"),
}


@pytest.mark.parametrize("data", BAD_JSON.values(), ids=BAD_JSON)
def test_invalid_json_is_a_bad_frame_with_one_sentence(data):
    with pytest.raises(BadFrameError) as caught:
        decode(data, Envelope)
    sentence = str(caught.value)
    assert sentence.startswith(("malformed JSON: ", "not UTF-8: ", "the JSON is nested too deeply"))
    assert "\n" not in sentence
    assert len(sentence) < 100


@pytest.mark.parametrize("data", BAD_JSON.values(), ids=BAD_JSON)
def test_invalid_json_is_refused_within_free_arguments(data):
    call = b'{"approval":"a","args_digest":"d","decision":"allow","args":{"x":%b}}' % data
    with pytest.raises(BadFrameError):
        decode(call, Approve)


@pytest.mark.parametrize(("data", "sentence"), WRONG_SHAPE.values(), ids=WRONG_SHAPE)
def test_a_wrong_type_is_reported_with_its_field(data, sentence):
    with pytest.raises(BadFrameError) as caught:
        decode(data, Envelope)
    assert str(caught.value) == sentence


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b'{"type":"prompt"}', "object missing required field `message`"),
        (
            b'{"message":"x","images":[{"mime_type":"image/png"}]}',
            "object missing required field `data` in `images[0]`",
        ),
        (b'{"message":"x","images":{}}', "expected `array | null`, got `object` in `images`"),
    ],
)
def test_a_nested_field_is_reported_with_its_path(data, sentence):
    with pytest.raises(BadFrameError) as caught:
        decode(data, Prompt)
    assert str(caught.value) == sentence


def test_convert_checks_decoded_values_in_the_same_way():
    assert convert({"message": "x", "new": 1}, Prompt) == Prompt(message="x")
    with pytest.raises(BadFrameError, match=r"^object missing required field `message`$"):
        convert({}, Prompt)
    with pytest.raises(BadFrameError, match=r"^expected `str`, got `int` in `message`$"):
        convert({"message": 1}, Prompt)


def test_unknown_fields_are_ignored_because_newer_clients_send_them():
    assert decode(b'{"type":"ping","id":1,"new":{"a":[1,2]}}', Envelope) == Envelope("ping", 1)


def test_a_number_too_big_for_64_bits_is_still_a_number():
    assert decode(b'{"id":%d}' % 10**30, Envelope).id == 10**30


@pytest.mark.parametrize("text", ["\U0001f6aa", "\u2028", "\x7f", "\u0000", "ä", "\\", '"', "\r\n"])
def test_any_character_survives_encoding_and_decoding(text):
    line = encode(Prompt(message=text))
    assert b"\n" not in line
    assert decode(line, Prompt).message == text


def test_an_escaped_pair_of_surrogates_is_one_character():
    assert decode(b'{"type":"\\ud83d\\udeaa"}', Envelope).type == "\U0001f6aa"


def test_default_values_are_omitted_from_a_frame():
    assert encode(Response("ping", success=True, id=1)) == b'{"type":"response","command":"ping","success":true,"id":1}'
    assert encode(Hello()) == b"{}"


def test_a_frame_cannot_be_changed():
    with pytest.raises(AttributeError):
        Envelope("ping").type = "pong"  # type: ignore[misc]


@given(st.binary(max_size=60))
def test_any_bytes_decode_or_are_a_bad_frame(data):
    try:
        found = decode(data, Envelope)
    except BadFrameError:
        return
    assert isinstance(msgspec.json.decode(data.decode()), dict)
    assert isinstance(found, Envelope)
