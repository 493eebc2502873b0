"""Events: the specification's fields, no `seq` on live events, and encoding without loss."""

import types
from functools import cache
from typing import Union, get_args, get_origin

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zotd.wire.base import ENCODER
from zotd.wire.content import Image, Text, Thinking, ToolCall, ToolResult, visible
from zotd.wire.events import DECODER, LIVE, AnyEvent, Event, TurnEnd, tag_of

ALL = get_args(AnyEvent)

STDIO = {
    "user_message": "content time input? run? sender? shell?",
    "turn_start": "step",
    "assistant_start": "",
    "text_delta": "delta",
    "tool_use_start": "id name",
    "tool_use_args": "id delta",
    "tool_use_end": "id",
    "usage": "input output cache_read cache_write cost_usd cumulative reasoning?",
    "assistant_message": "content time",
    "tool_call": "id name args",
    "turn_end": "stop error?",
    "tool_progress": "id text",
    "tool_result": "id is_error content name? extension? time?",
    "compact_done": "summary",
    "error": "message",
    "done": "run?",
}
"""From `docs/protocol.md`; fields that only the daemon sends are optional."""

DAEMON = {
    "approval_requested": "approval tool_id tool args args_digest preview? expires? rule? choices? subagent?",
    "approval_resolved": "approval decision scope by reason?",
    "queue_changed": "items held",
    "session_changed": "state name? provider? model? reasoning? mode?",
    "interrupted": "what text tool_id? partial?",
    "blocked": "code message",
    "guard_note": "extension event text",
    "retry": "attempt of delay_s reason brief? left_s?",
    "model_switched": "provider model before own? reason? brief?",
    "plan": "plan planning?",
    "job": "job",
    "job_ports": "job ports",
    "notice": "level text",
    "ext_notify": "extension level message",
    "ext_display": "extension text",
    "ext_clear_notes": "extension",
    "ext_status": "extension key text",
    "ext_panel": "extension panel_id title lines footer",
    "ext_panel_closed": "extension panel_id",
    "ext_insert": "text",
    "presence": "clients",
    "heartbeat": "",
    "evicted": "reason last_seq",
    "replay_complete": "",
    "session_added": "name cwd state parent?",
    "session_updated": "name cwd state failed? parent?",
    "session_removed": "",
    "ext_state": "extension cwd state reason?",
    "trust_required": "cwd items digest",
}
"""From `docs/protocol.md`."""

ADDED = {
    "tool_start": "id",
    "file_request": "id action path content?",
    "terminal_request": "id action call command? args? cwd? output_bytes?",
    "side_delta": "key delta",
    "timers_changed": "",
    "ext_log": "extension text",
    "ext_frame": "extension direction frame time latency_s? cut?",
    "rewound": "to",
    "forked": "origin at file? text?",
    "thinking_delta": "delta",
    "attention": "reason text",
    "shell_start": "id command context sender?",
}
"""Additional events for the commands `files.offer`, `terminals.offer`, `session.side_question`, `timer.add`, `ext.logs`, `ext.tap`, `session.rewind`, `session.fork`,
`presence.update` and `shell`, and to show that a model is thinking and when a call starts to run."""

WITHOUT_SEQ = {
    *("file_request", "terminal_request", "side_delta", "job_ports", "ext_log", "ext_frame"),
    *("text_delta", "tool_use_start", "tool_use_args", "tool_use_end", "tool_progress", "retry", "notice"),
    *("ext_notify", "ext_display", "ext_clear_notes", "ext_status", "ext_panel", "ext_panel_closed", "ext_insert"),
    *("presence", "heartbeat", "evicted", "attention", "thinking_delta", "tool_start"),
}
"""Marked with a dash in the specification's tables."""


def described(kind):
    """Return a Struct's own fields in the notation of the tables above, in any order."""
    own = [field for field in msgspec.structs.fields(kind) if field.name not in {"session", "seq"}]
    return {field.encode_name + ("" if field.required else "?") for field in own}


# --- the tables -----------------------------------------------------------------------------------------------


def test_all_events_of_the_specification_exist():
    assert {tag_of(kind) for kind in ALL} == STDIO.keys() | DAEMON.keys() | ADDED.keys()


@pytest.mark.parametrize("kind", ALL, ids=tag_of)
def test_an_event_has_the_fields_of_the_specification(kind):
    assert described(kind) == set((STDIO | DAEMON | ADDED)[tag_of(kind)].split())


def test_live_events_are_those_without_seq():
    assert {tag_of(kind) for kind in LIVE} == WITHOUT_SEQ


@pytest.mark.parametrize("kind", ALL, ids=tag_of)
def test_every_event_can_carry_its_session_and_seq_and_needs_neither(kind):
    assert issubclass(kind, Event)
    optional = {field.name for field in msgspec.structs.fields(kind) if not field.required}
    assert optional >= {"session", "seq"}


# --- encoding -------------------------------------------------------------------------------------------------

SCALARS = {
    str: st.text(max_size=8),
    int: st.integers(-(2**53), 2**53),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    type(None): st.none(),
}
scalars = st.one_of(list(SCALARS.values()))
anything = scalars | st.lists(scalars, max_size=3) | st.dictionaries(SCALARS[str], scalars, max_size=3)
PLAIN = SCALARS | {object: anything}


@cache
def values(kind):
    """Strategy for any value of a type that the Structs use."""
    if kind in PLAIN:
        return PLAIN[kind]
    if get_origin(kind) is list:
        return st.lists(values(get_args(kind)[0]), max_size=3)
    if get_origin(kind) is dict:
        return st.dictionaries(*map(values, get_args(kind)), max_size=3)
    if get_origin(kind) in {Union, types.UnionType}:
        return st.one_of([values(member) for member in get_args(kind)])
    return st.builds(kind, **{field.name: values(field.type) for field in msgspec.structs.fields(kind)})


@pytest.mark.parametrize("kind", ALL, ids=tag_of)
@given(data=st.data())
@settings(max_examples=30, deadline=None)
def test_an_event_survives_encoding_and_decoding(kind, data):
    event = data.draw(values(kind))
    line = ENCODER.encode(event)
    assert b"\n" not in line
    assert DECODER.decode(line) == event


@pytest.mark.parametrize("kind", ALL, ids=tag_of)
def test_absent_session_and_seq_are_omitted(kind):
    required = {field.name: sample(field.type) for field in msgspec.structs.fields(kind) if field.required}
    frame = msgspec.json.decode(ENCODER.encode(kind(**required)))
    assert frame.keys() == {"type", *required}
    assert frame["type"] == tag_of(kind)


def sample(kind):
    """Return the simplest value of a type."""
    return msgspec.convert(
        {str: "", int: 0, float: 0.0, bool: False}.get(kind, {}) if kind in PLAIN else empty(kind), kind
    )


def empty(kind):
    if type(None) in get_args(kind):
        return None
    if get_origin(kind) is list:
        return []
    found = msgspec.structs.fields(kind) if isinstance(kind, type) and issubclass(kind, msgspec.Struct) else ()
    return {field.encode_name: sample(field.type) for field in found if field.required}


def test_an_unknown_event_raises_a_validation_error():
    with pytest.raises(msgspec.ValidationError, match="new_event"):
        DECODER.decode(b'{"type":"new_event"}')


def test_a_field_that_a_newer_daemon_sends_is_ignored():
    assert DECODER.decode(b'{"type":"turn_end","stop":"length","new":[1]}') == TurnEnd("length")


# --- content --------------------------------------------------------------------------------------------------


def test_clients_see_images_as_byte_counts_and_no_thinking():
    picture = Image("image/png", 3, "AAAA")
    seen = visible(
        [
            Thinking("hm", "signed"),
            Text("x"),
            picture,
            ToolCall("c", "look", {}),
            ToolResult("c", is_error=False, content=[Text("y"), picture]),
        ]
    )
    assert seen == [
        Text("x"),
        Image("image/png", 3),
        ToolCall("c", "look", {}),
        ToolResult("c", is_error=False, content=[Text("y"), Image("image/png", 3)]),
    ]
    assert b"data" not in ENCODER.encode(seen)
