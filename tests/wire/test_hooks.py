"""Files of hooks: what is read, and what is said of entries that cannot be used."""

import json

import pytest

from zotd.wire.hooks import MAX_S, PROMPT_S, CommandHook, HookEvent, HookFileError, read_hooks

RUN = {"type": "command", "command": "check"}


def read(**events):
    return read_hooks(json.dumps({"hooks": events}).encode())


def hook(matcher):
    return CommandHook(HookEvent.PRE_TOOL_USE, "check", matcher=matcher)


def test_hooks_are_read_in_their_order():
    found = read(
        PreToolUse=[{"matcher": "Bash", "hooks": [{**RUN, "timeout": 5}, {**RUN, "async": True}]}],
        Stop=[{"hooks": [{**RUN, "args": ["--all"]}]}],
    )
    assert found.hooks == (
        CommandHook(HookEvent.PRE_TOOL_USE, "check", matcher="Bash", limit_s=5),
        CommandHook(HookEvent.PRE_TOOL_USE, "check", matcher="Bash", is_async=True),
        CommandHook(HookEvent.STOP, "check", args=("--all",)),
    )
    assert found.faults == ()


@pytest.mark.parametrize(
    ("event", "timeout", "limit_s"),
    [
        ("PreToolUse", 5000, MAX_S),
        ("UserPromptSubmit", 60, PROMPT_S),
        ("SessionStart", None, PROMPT_S),
        ("Stop", None, 60),
    ],
)
def test_a_time_limit_is_bounded(event, timeout, limit_s):
    assert read(**{event: [{"hooks": [{**RUN, "timeout": timeout}]}]}).hooks[0].limit_s == limit_s


@pytest.mark.parametrize(
    ("matcher", "name", "concerns"),
    [
        ("", "Bash", True),
        ("*", "Bash", True),
        ("Bash", "Bash", True),
        ("Bash", "BashOutput", False),
        ("Edit|Write", "Write", True),
        ("Edit|Write", "NotebookEdit", False),
        ("mcp__memory__.*", "mcp__memory__read", True),
        ("mcp__memory", "mcp__memory__read", False),
        ("^Note", "NotebookEdit", True),
        ("bash", "Bash", False),
    ],
)
def test_a_matcher_names_tools_or_is_a_regular_expression(matcher, name, concerns):
    assert hook(matcher).concerns((name,)) is concerns


@pytest.mark.parametrize(
    ("event", "groups", "fault"),
    [
        ("SubagentStop", [{"hooks": [RUN]}], "the event SubagentStop is not used"),
        ("Stop", {}, "Stop is not a list"),
        ("Stop", ["check"], "Stop, entry 1: expected `object`, got `str`"),
        ("Stop", [{}], "Stop, entry 1: object missing required field `hooks`"),
        (
            "PreToolUse",
            [{"matcher": "Ba(sh", "hooks": [RUN]}],
            "PreToolUse, entry 1: its matcher is not a regular expression: missing )",
        ),
        ("Stop", [{"hooks": [{"type": "prompt", "prompt": "Done?"}]}], 'a hook of the type "prompt" is not used'),
        ("Stop", [{"hooks": [{"type": "command"}]}], "it has no `command` to run"),
        ("Stop", [{"hooks": [{**RUN, "timeout": 0}]}], "its `timeout` is not a number of seconds above 0"),
        ("Stop", [{"hooks": [{**RUN, "if": "Bash(git *)"}]}], "it has `if`, which is not supported"),
        ("Stop", [{"hooks": [{**RUN, "shell": "powershell"}]}], 'its `shell` "powershell" is not "bash"'),
    ],
)
def test_an_entry_that_cannot_be_used_is_described_and_the_others_are_read(event, groups, fault):
    found = read(**{event: groups, "PostToolUse": [{"hooks": [RUN]}]})
    assert [one.event for one in found.hooks] == [HookEvent.POST_TOOL_USE]
    (sentence,) = found.faults
    assert fault in sentence


@pytest.mark.parametrize("data", [b"{", b"[]", b'{"hooks": []}', b"\xff"])
def test_a_file_that_is_no_file_of_hooks_is_refused(data):
    with pytest.raises(HookFileError):
        read_hooks(data)


def test_settings_without_hooks_have_none():
    assert read_hooks(b'{"permissions": {}}').hooks == ()
