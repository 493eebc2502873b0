"""`zotctl jobs`, in the real daemon."""

import json

import pytest


def job(command):
    args = {"command": command, "background": True}
    return {"steps": [{"type": "call", "name": "bash", "args": args}]}


SAID = {"steps": [{"type": "text", "deltas": ["ok"]}]}


@pytest.fixture
def session(live):
    """A session in which a job runs, and one has ended."""
    session = live.session(live.scripted(job("exit 3"), job("echo walrus; exec sleep 600"), SAID))
    with live.connect() as connection:
        connection.call("attach", session=session)
        connection.call("prompt", session=session, message="go")
        awaited = {"done", "job"}
        for event in connection.events(60):
            if event["type"] == "done":
                awaited.discard("done")
            elif event["type"] == "job" and event["job"]["state"] == "ended":
                awaited.discard("job")
            if not awaited:
                return session
    raise AssertionError(awaited)


def test_the_jobs_that_run_are_listed_with_their_sessions(live, session):
    code, out, _ = live.zotctl("jobs")
    (head, row) = out.splitlines()
    assert code == 0
    assert head.split() == ["SESSION", "JOB", "STATE", "LISTENS", "ON", "COMMAND"]
    assert row.startswith(f"{session}  j2   running ")
    assert row.endswith("echo walrus; exec sleep 600")


def test_those_of_one_session_are_listed_after_their_end(live, session):
    code, out, _ = live.zotctl("jobs", "--last")
    assert code == 0
    assert [row.split()[1] for row in out.splitlines()[1:]] == ["j1", "j2"]
    assert "exit 3 after " in out
    told = json.loads(live.zotctl("jobs", "-s", "tests", "--json")[1])
    assert [(one["session"], one["id"], one["state"]) for one in told["jobs"]] == [
        (session, "j1", "ended"),
        (session, "j2", "running"),
    ]


def test_a_job_is_stopped_by_its_id(live, session):
    code, out, err = live.zotctl("jobs", "stop", "j2")
    assert (code, err) == (0, "")
    assert out.startswith("j2: stopped by ")
    assert live.zotctl("jobs")[1] == "there are no jobs\n"
    code, _, err = live.zotctl("jobs", "stop", "j2")
    assert (code, err) == (
        1,
        'zotctl: no job with the ID "j2" runs; `zotctl jobs` lists them, -s chooses the session\n',
    )
    stopped = json.loads(live.zotctl("jobs", "stop", "j2", "-s", session, "--json")[1])
    assert (stopped["id"], stopped["state"]) == ("j2", "stopped")


def test_the_tree_of_a_session_has_the_jobs_that_run(live, session):
    code, out, err = live.zotctl("tree", "-s", session)
    assert (code, err) == (0, "")
    count, line = out.splitlines()[-2:]
    assert count == "1 job"
    assert line.startswith("j2  running ")
    assert line.endswith("  echo walrus; exec sleep 600")
    told = json.loads(live.zotctl("tree", "-s", session, "--json")[1])
    assert [(one["id"], one["state"]) for one in told["jobs"]] == [("j1", "ended"), ("j2", "running")]


def test_a_word_that_is_no_command_is_refused(live):
    code, _, err = live.zotctl("jobs", "end", "j1")
    assert (code, err) == (1, 'zotctl: unknown jobs command "end j1"; use stop JOB\n')
