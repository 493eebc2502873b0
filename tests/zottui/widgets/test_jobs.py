"""The jobs in the live area: a line for each, within a budget of rows."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.zottui.fake_ui import shown
from tests.zottui.widgets.states import BUSY, EVIL, LIVE, NOW
from zotd.wire.jobs import RUNNING, JobInfo
from zottui.state import LiveJob
from zottui.widgets.jobs import MAX_ROWS, job_card
from zottui.widgets.live import activity


def job(number, command="npm run dev", ports=()):
    info = JobInfo(id=f"j{number}", command=command, call="c1", started="", output="", state=RUNNING, ports=list(ports))
    return LiveJob(info, NOW - 12)


def screen(jobs, state=BUSY, width=60, height=12):
    return shown(job_card(replace(state, jobs=tuple(jobs)), NOW, width, height), width, height)


def test_each_job_is_shown_with_its_time_and_its_ports():
    assert screen([job(1), job(2, "make\ntest", [8080, 9090])]) == (
        "▪ j1  npm run dev  12s\n▪ j2  make test  12s  localhost:8080 localhost:9090"
    )


def test_without_a_run_nothing_draws_the_screen_again_so_no_time_is_shown():
    assert screen([job(1, ports=[8080])], LIVE) == "▪ j1  npm run dev  localhost:8080"


def test_without_jobs_there_is_no_card():
    assert screen([]) == ""


def test_of_many_jobs_the_newest_are_shown():
    assert screen(map(job, range(1, 9)), LIVE).splitlines() == [
        "… 5 more jobs",
        "▪ j6  npm run dev",
        "▪ j7  npm run dev",
        "▪ j8  npm run dev",
    ]


def test_without_room_the_command_is_cut_first():
    wide = [job(1, "npm run dev -- --a-long-option", [8080])]
    assert screen(wide, width=36) == "▪ j1  npm run …  12s  localhost:8080"


def test_the_jobs_leave_room_for_the_run():
    rows = shown(activity(replace(BUSY, jobs=(job(1), job(2), job(3))), NOW, 40, 6), 40, 6).splitlines()
    assert rows == ["⠋ working… 10s", "… 2 more jobs", "▪ j3  npm run dev  12s"]


@given(st.lists(st.builds(job, st.just(1), st.just(EVIL)), max_size=9))
def test_no_job_steers_a_terminal_or_takes_more_rows(jobs):
    for height in range(8):
        rows = job_card(replace(BUSY, jobs=tuple(jobs)), NOW, 12, height)
        assert len(rows) <= min(height, MAX_ROWS)
        shown(rows, 12, max(height, 1))
