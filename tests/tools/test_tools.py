"""What holds for every built-in tool."""

import msgspec
import pytest

from zotd.core.ports import Replay
from zotd.tools import TOOLS

READERS = {"read", "fetch", "glob", "grep", "plan", "skill", "web_search", "job_output", "job_stop", "job_wait"}
"""Of these, `job_stop` ends what is the session's own, and a second time it does nothing."""

KEYED = {"task", "wake_later"}
"""They find what they have begun by the id of the call."""


def test_the_tools_are_these_in_this_order():
    jobs = ["job_output", "job_stop", "job_wait"]
    names = [
        "bash",
        "edit",
        "fetch",
        "glob",
        "grep",
        *jobs,
        "plan",
        "read",
        "skill",
        "task",
        "wake_later",
        "web_search",
        "write",
    ]
    assert [tool.spec.name for tool in TOOLS] == names


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.spec.name)
def test_only_what_changes_nothing_runs_beside_others_and_again_after_a_crash(tool):
    is_reader, has_key = tool.spec.name in READERS, tool.spec.name in KEYED
    assert tool.parallel is (is_reader or has_key)
    assert tool.replay is (Replay.SAFE if is_reader else Replay.IDEMPOTENT if has_key else Replay.NEVER)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.spec.name)
def test_a_schema_is_one_plain_object_that_describes_every_argument(tool):
    text = msgspec.json.encode(tool.spec.schema).decode()
    assert tool.spec.schema["type"] == "object"
    assert "$" not in text
    assert '"title"' not in text
    assert all(argument["description"] for argument in tool.spec.schema["properties"].values())


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.spec.name)
async def test_arguments_of_the_wrong_type_are_an_outcome(tool, context):
    args: dict[str, object] = {name: {} for name in tool.spec.schema["properties"]}
    outcome = await tool.run(args, context())
    assert outcome.is_error
    assert outcome.content[0].text.startswith(f"bad arguments of {tool.spec.name}: ")
