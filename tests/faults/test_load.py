"""A small share of each check that kills nobody (`docs/reliability.md`): what has to hold at any size and any speed."""

import random

import pytest

from benchmarks import slow_client
from tests.faults import attach_detach, autostart, carriers, cursors, duels, job_flood, mutated_frames, strays
from tests.faults.comer import Story
from tests.faults.mutations import NEVER, Mutations, commands
from tests.faults.row import Options


async def test_clients_that_come_and_go_leave_no_descriptor_and_no_task_behind():
    before, after = await attach_detach.measure(Options(seed=11, share=0.03))
    assert attach_detach.is_clean(before, after)


async def test_fifty_commands_that_start_the_daemon_get_one_and_all_get_an_answer():
    outcome = await autostart.measure(Options(seed=12, share=0.1))
    assert outcome.is_clean, outcome


async def test_nothing_is_left_of_extensions_that_ignore_everything_when_their_daemon_was_killed():
    outcome = await strays.measure()
    assert outcome.survivors > 0
    assert outcome.strays == 0


async def test_a_client_that_never_reads_is_cut_and_the_others_lose_nothing():
    outcome = await slow_client.watch(7, silent=True)
    assert outcome.cut_s > 0
    assert outcome.lost == 0


async def test_a_job_that_floods_fills_neither_the_disk_nor_the_memory_and_its_end_is_told():
    outcome = await job_flood.measure(200_000_000)
    assert outcome.printed == 200_000_000
    assert outcome.prompts_s
    assert outcome.is_bounded, outcome


# --- duels --------------------------------------------------------------------------------------------------------


async def test_one_of_two_people_who_decide_at_once_wins_and_the_other_learns_who():
    wins, faults = await duels.measure(Options(seed=15, share=0.01))
    assert faults == []
    assert min(wins.values()) > 0  # it was a race


ANN: dict[str, object] = {"success": True}
BEN: dict[str, object] = {"success": False, "code": "already_resolved", "error": "ann has allowed it already"}
TOLD: dict[str, object] = {"by": "ann", "decision": "allow"}


@pytest.mark.parametrize(
    ("answers", "told", "fault"),
    [
        ({}, TOLD, ""),
        ({"ben": ANN}, TOLD, "won"),
        ({"ann": BEN}, TOLD, "won"),
        ({"ben": BEN | {"code": "not_found"}}, TOLD, "was told"),
        ({"ben": BEN | {"error": "ann has denied it already"}}, TOLD, "was told"),
        ({}, TOLD | {"by": "ben"}, "others"),
        ({}, TOLD | {"decision": "deny"}, "others"),
    ],
)
def test_a_duel_that_went_wrong_is_found(tmp_path, answers, told, fault):
    (tmp_path / "a").touch()
    found = duels.Duel("a", {"ann": ANN, "ben": BEN} | answers, {"ann": told, "ben": TOLD}).fault(tmp_path) or ""
    assert bool(found) is bool(fault)
    assert fault in found


def test_a_call_that_contradicts_its_decision_is_found(tmp_path):
    assert "contrary" in str(duels.Duel("a", {"ann": ANN, "ben": BEN}, {"ann": TOLD}).fault(tmp_path))


# --- cursors ----------------------------------------------------------------------------------------------------


async def test_clients_that_come_back_with_their_cursor_have_seen_what_the_database_has():
    outcome = await cursors.measure(Options(seed=13, share=0.025))
    assert outcome.is_clean, outcome
    assert outcome.attached > cursors.CLIENTS  # they did come back


STORED = {"s_1": [b"1", b"2", b"3"]}


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        ([b"1", b"2", b"3"], (0, 0, 0)),
        ([b"1", b"3"], (1, 0, 0)),
        ([b"1", b"2", b"2", b"3"], (0, 1, 0)),
        ([b"2", b"1", b"3"], (0, 0, 1)),
        ([b"1", b"2", b"another 3"], (1, 0, 0)),
    ],
)
def test_what_a_client_must_not_see_is_found(lines, found):
    outcome = cursors.judged([Story("s_1", "e", lines)], STORED)
    assert (outcome.lost, outcome.doubled, outcome.misplaced) == found
    assert outcome.is_clean is (found == (0, 0, 0))


# --- frames -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "carrier", [mutated_frames.over_socket, mutated_frames.over_stdio, mutated_frames.over_websocket]
)
async def test_every_mutated_frame_gets_an_answer_and_nothing_breaks(carrier):
    outcome = await carrier(Options(seed=14, share=0.006))
    assert outcome.is_clean, outcome.complaints
    assert outcome.frames == 6000


@pytest.fixture
def mutations(tmp_path):
    def mutations(seed):
        return Mutations(random.Random(seed), commands(stdio=False), {"session": "s_1", "cwd": str(tmp_path)})

    return mutations


def test_a_seed_gives_the_same_frames_again(mutations):
    first, again, other = (mutations(seed).lines(500) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_what_must_not_be_done_is_never_asked_for(mutations):
    asked = [line for line in mutations(3).lines(20_000) if any(name.encode() in line for name in NEVER)]
    assert asked
    assert all(b":[]" in line for line in asked)  # of fields that are no lists


@pytest.mark.parametrize(("data", "count"), [(b"a\nb\n", 2), (b"\n\r\na\r\n", 1), (b"a\n", 1), (b'{"a":"\r"}\n', 1)])
def test_each_line_that_is_not_empty_is_answered(data, count):
    assert carriers.answers_to(data) == count
