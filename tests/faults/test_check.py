"""The rig's own eyes: each broken promise, as little of it as there can be, is seen."""

import pytest

from tests.faults import check
from tests.faults.check import Effect, Findings, Promise, Story
from tests.faults.client import Pulse, Seen, Sender, Sent
from zotd.core import records
from zotd.wire import api, events
from zotd.wire.content import Text, ToolCall

CALL = ToolCall("c_1", "bash", {"command": "echo 'bash k0x1x0x0 - ran' >> witness"})

REPLY = records.Reply(time="", run="r_1", step=1, content=[CALL], stop="tool_use")


def result(*, is_error=False):
    return records.CallResult(time="", run="r_1", call_id="c_1", name="bash", is_error=is_error, content=[Text("")])


def effects(*lines):
    return [Effect(*line.split()) for line in lines]


def broken(findings):
    return [problem.promise for problem in findings.problems]


@pytest.mark.parametrize(
    ("lines", "promise"),
    [
        (["bash k0x1x0x0 - ran"] * 2, Promise.NEVER),
        (["note k0x1x0x0 - ran"] * 2, Promise.NEVER),
        (["stamp k0x1x0x0 o_1 ran", "stamp k0x1x0x0 o_2 ran"], Promise.OPERATION),
        (["stamp k0x1x0x0 - ran"], Promise.OPERATION),
        (["transfer k0x1x0x0 o_1 ran"] * 2, Promise.OPERATION),
        ([f"transfer k0x1x0x0 o_1 {what}" for what in ("ran", "completed", "ran")], Promise.OPERATION),
    ],
)
def test_an_effect_that_should_not_be_there_is_seen(lines, promise):
    findings = Findings()
    check._look_at_effects(effects(*lines), findings)
    assert broken(findings) == [promise]


@pytest.mark.parametrize(
    "lines",
    [
        ["look k0x1x0x0 - ran"] * 2,
        ["stamp k0x1x0x0 o_1 ran"] * 2,
        [f"transfer k0x1x0x0 o_1 {what}" for what in ("not_started", "ran")],
        [f"transfer k0x1x0x0 o_1 {what}" for what in ("ran", "completed")],
    ],
)
def test_what_may_be_repeated_is_no_problem(lines):
    findings = Findings()
    check._look_at_effects(effects(*lines), findings)
    assert not findings.problems


def test_a_file_that_is_written_again_after_it_was_moved_away_is_seen(tmp_path):
    for expected in ([], [], ["k0x1x0x0"]):
        assert check.sweep(tmp_path) == expected
        (tmp_path / "written").mkdir(exist_ok=True)
        (tmp_path / "written" / "k0x1x0x0").touch()


@pytest.mark.parametrize(
    ("story", "lines", "promise"),
    [
        ([REPLY], [], Promise.RESULT),
        ([REPLY, result(), result()], ["bash k0x1x0x0 - ran"], Promise.RESULT),
        ([REPLY, result()], [], Promise.NEVER),
    ],
    ids=["no result", "two results", "a result of nothing"],
)
def test_a_call_whose_story_does_not_end_well_is_seen(story, lines, promise):
    told, findings = Story(), Findings()
    for record in story:
        told.tell(record)
    check._look_at_calls(told, effects(*lines), findings)
    assert broken(findings) == [promise]


@pytest.mark.parametrize(
    "times",
    [
        {"accepted": 0, "started": 0},
        {"accepted": 1, "started": 0},
        {"accepted": 1, "started": 2},
        {"accepted": 2, "started": 1},
    ],
)
def test_an_input_that_was_lost_or_taken_twice_is_seen(times):
    sender = Sender(Seen("s_1", api.Cursor("e", 0)), iter(()), "auto", Pulse())
    sender.sent.append(Sent("request-1", "go", "queue", api.Started(started=True, input="i_0")))
    told, findings = Story(), Findings()
    for number in range(times["accepted"]):
        told.tell(records.Input(time="", id=f"i_{number}", content=[], request_id="request-1"))
    for _ in range(times["started"]):
        told.tell(records.Attempt(time="", run="r", step=1, number=1, provider="p", model="m", input="i_0"))
    check._look_at_inputs(sender, told, findings)
    assert set(broken(findings)) == {Promise.INPUT}


@pytest.mark.parametrize("numbers", [[1, 3], [1, 2, 2, 3], [1, 3, 2], [1, 2, 3, 4]])
def test_events_that_are_not_those_of_the_database_are_seen(numbers):
    seen = Seen("s_1", api.Cursor("e", 0), [events.TurnStart(1, seq=number) for number in numbers])
    findings = Findings()
    check._look_at_events("client", seen, [events.TurnStart(1, seq=number) for number in (1, 2, 3)], findings)
    assert broken(findings) == [Promise.EVENTS]
