"""kill -9, as much of it as fits into every test run; `make faults` does all of it."""

import secrets

import pytest

from tests.faults import batches, checkpoints, fallback, families, fleet, kills, postgres, power, weather
from tests.faults.row import Options
from tests.needs import ABSENT, needs
from zotd.testing.postgres_server import MISSING

SHARE = 0.005
"""Every named point once."""

KILLS = 20
"""At random instants."""

POSTGRES_KILLS = 10


@pytest.mark.timeout(240)  # 15 s on two cores that have nothing else to do
async def test_accepted_input_survives_every_kill_and_dangerous_calls_run_once():
    said: list[str] = []
    rows = await kills.run(Options(secrets.randbits(32), SHARE, KILLS, say=said.append))
    assert all(row.ok for row in rows), "\n".join([*said, *(row.line() for row in rows)])


@pytest.mark.skipif(MISSING is not None, reason=f"{ABSENT}PostgreSQL and psycopg")
@pytest.mark.timeout(240)  # 12 s on two cores that have nothing else to do
async def test_the_same_is_true_of_sessions_in_postgresql():
    said: list[str] = []
    rows = await postgres.run(Options(secrets.randbits(32), kills=POSTGRES_KILLS, say=said.append))
    assert all(row.ok for row in rows), "\n".join([*said, *(row.line() for row in rows)])


@pytest.mark.skipif(MISSING is not None, reason=f"{ABSENT}PostgreSQL and psycopg")
@pytest.mark.timeout(400)  # 60 s, most of which are waits for the ends of leases
async def test_daemons_of_one_database_lose_nothing_and_do_nothing_twice_when_one_goes_away():
    said: list[str] = []
    stored, *_ = await fleet.run(Options(secrets.randbits(32), 0.001, say=said.append))  # the others are about time
    assert stored.ok, "\n".join([*said, stored.line()])


@pytest.mark.skipif(MISSING is not None, reason=f"{ABSENT}PostgreSQL and psycopg")
@pytest.mark.timeout(400)  # 20 s, most of which are waits for the ends of leases
async def test_each_prompt_of_a_batch_has_one_result_when_daemons_are_killed():
    said: list[str] = []
    row = await batches.run(Options(secrets.randbits(32), 0.08, say=said.append))
    assert row.ok, "\n".join([*said, row.line()])


LACKING = power.missing()


@pytest.mark.skipif(LACKING is not None, reason=f"{ABSENT}{LACKING}")
@pytest.mark.timeout(240)  # 10 s on two cores that have nothing else to do
async def test_after_a_power_failure_no_cursor_resumes_into_another_history():
    said: list[str] = []
    row = await power.run(Options(secrets.randbits(32), 0.02, say=said.append))
    assert row.ok, "\n".join([*said, row.line()])


@pytest.mark.timeout(240)  # 8 s on two cores that have nothing else to do
async def test_runs_through_bad_weather_end_in_order_and_no_dangerous_call_runs_twice():
    said: list[str] = []
    row = await weather.run(Options(secrets.randbits(32), 0.03, say=said.append))
    assert row.ok, "\n".join([*said, row.line()])


@pytest.mark.timeout(240)  # 6 s on two cores that have nothing else to do
async def test_runs_with_a_fallback_end_with_their_answer_whatever_the_first_vendor_does():
    said: list[str] = []
    row = await fallback.run(Options(secrets.randbits(32), 0.1, say=said.append))
    assert row.ok, "\n".join([*said, row.line()])


@pytest.mark.timeout(240)  # 10 s on two cores that have nothing else to do
async def test_files_are_in_one_state_or_the_other_when_a_restore_was_killed():
    needs("git")
    said: list[str] = []
    row = await checkpoints.run(Options(secrets.randbits(32), 0.012, say=said.append))
    assert row.ok, "\n".join([*said, row.line()])


@pytest.mark.timeout(240)  # 25 s on two cores that have nothing else to do
async def test_families_go_on_after_kills_without_running_anything_twice():
    said: list[str] = []
    row = await families.run(Options(secrets.randbits(32), 0.08, say=said.append))
    assert row.ok, "\n".join([*said, row.line()])
