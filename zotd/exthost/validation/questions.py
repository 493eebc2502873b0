"""Frames for an extension that is being checked, with realistic values."""

from collections.abc import Iterator, Mapping

from zotd.core.registry import INTERCEPTS

Fields = Mapping[str, object]

_CALL: Fields = {"tool_id": "c_1", "tool_name": "read", "tool_args": {"path": "README.md"}}

GUARDED: Mapping[str, Fields] = {
    "tool_call": {**_CALL, "mode": "ask"},
    "tool_result": {
        **_CALL,
        "result": {"content": [{"type": "text", "text": "# Title"}], "is_error": False, "truncated": False},
    },
    "user_prompt_submit": {"text": "What is in README.md?", "mode": "ask"},
    "turn_start": {"step": 1},
    "assistant_message": {"text": "It is in README.md."},
    "before_agent_start": {"system_prompt": "You help with programs."},
}
"""A harmless question for each event that can be intercepted."""

# A new kind of interception without a question would never be checked.
assert GUARDED.keys() == set(INTERCEPTS)

EVENTS: Mapping[str, Fields] = {
    "session_start": {"source": "startup"},
    "user_prompt_submit": {"text": "What is in README.md?", "image_count": 0, "queued": False},
    "turn_start": {"step": 1},
    "assistant_message": {"text": "I read it."},
    "tool_call": _CALL,
    "turn_end": {"stop": "tool_use"},
    "permission_request": {**_CALL, "reason": "read needs a person's approval in this session"},
    "permission_decision": {"tool_id": "c_1", "tool_name": "read", "decision": "allow", "source": "user"},
    "tool_result": {
        **_CALL,
        "executed": True,
        "result": {"content": [{"type": "text", "text": "# Title"}], "is_error": False},
    },
    "pre_compact": {"compaction_id": "k_1", "reason": "manual", "message_count": 4, "token_estimate": 2000},
    "post_compact": {"compaction_id": "k_1", "status": "ok", "message_count": 2, "token_estimate": 500},
    "subagent_start": {"agent_id": "a_1", "agent_run_id": "r_1", "name": "reviewer"},
    "subagent_stop": {"agent_id": "a_1", "agent_run_id": "r_1", "name": "reviewer", "status": "ok"},
    "session_end": {"reason": "closed"},
}
"""A realistic example of each event (`docs/extensions.md`), in the order of a session."""

NEWER: Fields = {"of_a_newer_zot": {"list": [1, None, "two"]}}
"""An unknown field, as a later version of zot might add it."""

SEPARATORS: Fields = {"of_a_newer_zot": "a\u2028b\u2029c\u0085d\x0be\x0cf"}
"""A field with characters that some languages treat as line ends."""


def guard_question(event: str, cwd: str) -> Fields:
    """Build the frame that asks a guard about an event; without its `id`."""
    return {"type": "event_intercept", "event": event, "session_id": "s_1", "cwd": cwd, **GUARDED[event]}


def event(name: str, cwd: str) -> Fields:
    """Build the frame that reports an event."""
    return {"type": "event", "event": name, "session_id": "s_1", "cwd": cwd, **EVENTS[name]}


def tool_call(name: str, args: Mapping[str, object]) -> Fields:
    """Build the frame that calls a tool; without its `id`."""
    return {"type": "tool_call", "name": name, "args": args, "session_id": "s_1"}


def command(name: str) -> Fields:
    """Build the frame that runs a slash command without arguments; without its `id`."""
    return {"type": "command_invoked", "name": name, "args": "", "session_id": "s_1"}


def senseless_arguments(schema: Mapping[str, object] | None) -> Iterator[Fields]:
    """Yield invalid arguments that a model might send: none, all of the wrong type, unknown ones."""
    properties = (schema or {}).get("properties")
    yield {}
    if isinstance(properties, Mapping) and properties:
        yield {str(name): _wrong(wanted) for name, wanted in properties.items()}
    yield {"of_a_newer_model": "a\u2028b"}


def _wrong(schema: object) -> object:
    """Return a value of a type that the schema does not allow."""
    is_text = isinstance(schema, Mapping) and schema.get("type") == "string"
    return 7 if is_text else "not a value"
