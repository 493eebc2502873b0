"""Decoding lines of extensions into frames, or into the reason why they are none."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from zotd.wire import ext
from zotd.wire.base import encode
from zotd.wire.ext import Fault, Skipped, read

TO_EXTENSION = msgspec.json.Decoder(ext.ToExtension)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def values(kind):
    """Strategy for any value of a field of this type."""
    match kind:
        case msgspec.inspect.StrType():
            return texts
        case msgspec.inspect.BoolType():
            return st.booleans()
        case msgspec.inspect.IntType():
            return st.integers(-(2**63), 2**63 - 1)
        case msgspec.inspect.NoneType():
            return st.none()
        case msgspec.inspect.CustomType():  # `object`
            return json_values
        case msgspec.inspect.DictType():
            return st.dictionaries(texts, values(kind.value_type), max_size=3)
        case msgspec.inspect.VarTupleType():
            return st.lists(values(kind.item_type), max_size=3).map(tuple)
        case msgspec.inspect.UnionType():
            return st.one_of([values(one) for one in kind.types])
        case msgspec.inspect.StructType():
            return frames(kind.cls)
        case _:
            raise AssertionError(kind)


def frames(kind):
    info = msgspec.inspect.type_info(kind)
    assert isinstance(info, msgspec.inspect.StructType)
    return st.builds(kind, **{field.name: values(field.type) for field in info.fields})


def some(union):
    return st.one_of([frames(kind) for kind in union.__args__])


@given(some(ext.FromExtension))
def test_a_frame_from_an_extension_survives_encoding_and_decoding(frame):
    assert read(encode(frame)) == frame


@given(some(ext.ToExtension))
def test_a_frame_to_an_extension_can_be_decoded(frame):
    assert TO_EXTENSION.decode(encode(frame)) == frame


@given(some(ext.FromExtension), st.dictionaries(texts.map("x_{}".format), json_values, max_size=3))
def test_unknown_fields_are_ignored(frame, unknown):
    assert read(json.dumps({**json.loads(encode(frame)), **unknown}).encode()) == frame


@given(some(ext.FromExtension))
def test_null_counts_as_absent(frame):
    """Go encodes an empty list as null."""
    given = json.loads(encode(frame))
    fields = {field.encode_name for field in msgspec.structs.fields(type(frame))}
    assert read(json.dumps({**dict.fromkeys(fields), **given}).encode()) == frame


@given(st.binary(max_size=200).filter(lambda data: b"\n" not in data) | json_values.map(json.dumps).map(str.encode))
def test_any_line_is_decoded_or_skipped(line):
    found = read(line)
    assert not isinstance(found, Skipped) or found.sentence


def test_a_null_inside_arguments_is_data():
    line = b'{"type":"event_intercept_response","id":"1","modified_args":{"a":null},"reason":null}'
    assert read(line) == ext.EventInterceptResponse("1", modified_args={"a": None})


def test_null_in_a_panel_counts_as_absent():
    line = b'{"type":"open_panel","panel":{"id":"p","lines":null}}'
    assert read(line) == ext.OpenPanel(ext.Panel("p"))


@pytest.mark.parametrize("line", [b"npm warn deprecated", b"[1]", b"7", b'"hello"', b'{"type":', b"\xff\xfe"])
def test_a_line_that_is_no_object_is_stray(line):
    found = read(line)
    assert isinstance(found, Skipped)
    assert found.fault is Fault.STRAY
    assert found.sentence.startswith("not a JSON object: ")


def test_a_deeply_nested_line_is_stray():
    found = read(b"[" * 100_000 + b"]" * 100_000)
    assert isinstance(found, Skipped)
    assert found.fault is Fault.STRAY


def test_an_unknown_frame_is_reported_by_its_type():
    assert read(b'{"type":"teleport","id":"7"}') == Skipped(
        Fault.UNKNOWN, 'unknown frame type "teleport"', type="teleport"
    )


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b'{"type":"tool_result","id":"7","is_error":"no"}', "expected `bool`, got `str` in `is_error`"),
        (b'{"type":"tool_result","id":"7","content":"text"}', "expected `array`, got `str` in `content`"),
    ],
)
def test_a_bad_frame_keeps_the_id_of_its_request(line, sentence):
    assert read(line) == Skipped(Fault.BAD, f"bad frame `tool_result`: {sentence}", "tool_result", "7")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (
            b'{"type":"register_tool","description":"?"}',
            "bad frame `register_tool`: object missing required field `name`",
        ),
        (
            b'{"type":"register_tool","name":"x","schema":["city"]}',
            "bad frame `register_tool`: expected `object | null`, got `array` in `schema`",
        ),
        (b'{"name":"x"}', "a frame without `type`"),
        (b'{"type":["hello"]}', "a frame without `type`"),
    ],
)
def test_a_bad_frame_is_reported_in_one_sentence(line, sentence):
    found = read(line)
    assert isinstance(found, Skipped)
    assert (found.fault, found.sentence, found.id) == (Fault.BAD, sentence, None)


@pytest.mark.parametrize(
    ("text", "read_as"),
    [(b"caf\xe9", "caf\N{REPLACEMENT CHARACTER}"), (b"a\\ud83db", "a?b"), (b"a\\u2028b", "a\u2028b")],
)
def test_invalid_unicode_is_replaced(text, read_as):
    """Refusing a tool's result because of a Latin-1 file name would make the call fail."""
    found = read(b'{"type":"notify","message":"' + text + b'"}')
    assert found == ext.Notify(read_as)


def test_frames_are_encoded_as_in_the_original():
    assert encode(ext.Event(event="session_start")) == b'{"type":"event","event":"session_start"}'
    assert encode(ext.Event(event="turn_start", step=1)) == b'{"type":"event","event":"turn_start","step":1}'
    call = ext.ToolCall("1", "bash", {"command": "echo ONE"})
    assert encode(call) == b'{"type":"tool_call","id":"1","name":"bash","args":{"command":"echo ONE"}}'
    assert (
        encode(ext.CommandInvoked("1", "hello", "")) == b'{"type":"command_invoked","id":"1","name":"hello","args":""}'
    )
    assert encode(ext.Shutdown()) == b'{"type":"shutdown"}'
