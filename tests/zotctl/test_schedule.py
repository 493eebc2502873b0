"""`zotctl schedule`, in the real daemon."""

import json

import pytest


@pytest.fixture
def timer(live):
    """The id of a timer of a session with the name `tests`."""
    live.session()
    order = ["0 9 * * 1-5", "check the CI", "--session", "tests", "--tz", "UTC"]
    code, out, err = live.zotctl("schedule", "add", *order, "--json")
    assert (code, err) == (0, "")
    return json.loads(out)["timer"]["id"]


def listed(live):
    code, out, _ = live.zotctl("schedule", "list", "--json")
    assert code == 0
    return json.loads(out)["timers"]


def test_a_prompt_is_scheduled_listed_and_removed(live):
    session = live.session()
    code, out, err = live.zotctl(
        "schedule",
        "add",
        "0 9 * * 1-5",
        "check the CI",
        "--session",
        "tests",
        "--tz",
        "Europe/Berlin",
        "--limit-usd",
        "2",
    )
    assert code == 0
    assert "0 9 * * 1-5 (Europe/Berlin), next at 20" in out
    assert "`zotctl service install` does" in err
    (found,) = listed(live)
    assert (found["session"], found["message"], found["limit_usd"]) == (session, "check the CI", 2)
    code, out, _ = live.zotctl("schedule", "list", "--session", "tests")
    assert code == 0
    head, row = out.splitlines()
    assert head.split() == ["ID", "NEXT", "(UTC)", "WHEN", "WHERE", "FIRED", "PROMPT"]
    assert "0, $0.00 of $2.00  check the CI" in row
    assert live.zotctl("schedule", "remove", found["id"][:8])[:2] == (0, f"{found['id']}: removed\n")
    assert listed(live) == []


def test_a_new_session_each_time_and_intervals_and_single_times(live):
    live.cwd.joinpath("below").mkdir()
    order = [
        "--every",
        "1h30m",
        "look",
        "--new",
        "--cwd",
        str(live.cwd / "below"),
        "--mode",
        "read-only",
        "--times",
        "3",
    ]
    assert live.zotctl("schedule", "add", *order)[0] == 0
    assert live.zotctl("schedule", "add", "--at", "+2d", "once", "--new", "--until", "+3d")[0] == 0
    every, once = listed(live)
    assert (every["rule"], every["cwd"], every["times"]) == ("every 1h30m", str(live.cwd / "below"), 3)
    assert once["rule"] == f"at {once['due']}"
    assert once["until"] > once["due"]


def test_a_timer_is_paused_and_resumed(live, timer):
    assert live.zotctl("schedule", "pause", timer)[:2] == (0, f"{timer}: paused\n")
    assert listed(live)[0]["state"] == "paused"
    code, out, _ = live.zotctl("schedule", "resume", timer)
    assert code == 0
    assert out.startswith(f"{timer}: next at ")


def test_a_timer_that_cannot_fire_says_why(live):
    gone = live.cwd / "gone"
    gone.mkdir()
    assert live.zotctl("schedule", "add", "--every", "1h", "x", "--new", "--cwd", str(gone))[0] == 0
    gone.rmdir()
    (found,) = listed(live)
    code, out, _ = live.zotctl("schedule", "run", found["id"])
    assert (code, out.partition(";")[0]) == (1, f"{found['id']}: {gone} is not a directory")
    assert f"{gone} is not a directory" in live.zotctl("schedule", "list")[1]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["check the CI", "--new"], "takes a cron expression and a prompt, both in quotes"),
        (["0", "9", "*", "check", "--new"], "takes a cron expression and a prompt, both in quotes"),
        (["--every", "30m", "a", "b", "--new"], "takes a prompt in quotes and nothing else"),
        (["--every", "30m", "a", "--last", "--cwd", "."], "are for new sessions: --new"),
        (["--at", "soon", "a", "--new"], '"soon" is no time'),
        (["61 * * * *", "a", "--new"], "is no cron expression: bad minute"),
        (["--every", "5s", "a", "--new"], "an interval has 60 s to 366 days"),
    ],
)
def test_what_cannot_be_scheduled_is_refused_with_a_sentence(live, words, sentence):
    live.session()
    code, out, err = live.zotctl("schedule", "add", *words)
    assert (code, out) == (1, "")
    assert sentence in err


def test_an_unknown_timer_and_one_that_is_not_unique_are_named(live, timer):
    live.zotctl("schedule", "add", "--every", "1h", "x", "--last")
    assert 'there is no timer "t_9"' in live.zotctl("schedule", "pause", "t_9")[2]
    assert '"t_" is not unique; it could be ' in live.zotctl("schedule", "remove", "t_")[2]


def test_a_loop_is_begun_and_ended_from_a_script_and_listed_among_the_timers(live):
    live.session()
    code, out, _ = live.zotctl("send", "--last", "/loop 10m look")
    assert (code, "begins now, and then every 10m" in out) == (0, True)
    assert listed(live)[0]["origin"] == "loop"
    assert live.zotctl("send", "--last", "/loop stop")[0] == 0
    assert listed(live) == []


def test_timers_are_completed_with_what_they_do(live, timer):
    code, out, _ = live.zotctl("candidates", "zotctl", "schedule", "pause", "")
    assert (code, out) == (0, f"{timer}\t0 9 * * 1-5 (UTC)  check the CI\n")


def test_a_timer_is_edited_and_what_is_not_given_stays(live, timer):
    order = ["--cron", "30 8 * * *", "--prompt", "look", "--limit-usd", "3", "--until", "2999-01-01 00:00"]
    code, out, err = live.zotctl("schedule", "edit", timer[:8], *order)
    assert (code, err) == (0, "")
    assert out.startswith(f"{timer}: next at 20")
    (found,) = listed(live)
    assert (found["rule"], found["message"], found["limit_usd"]) == ("30 8 * * * (UTC)", "look", 3)
    assert found["until"].startswith("299")
    code, out, _ = live.zotctl("schedule", "edit", timer, "--no-limit", "--no-until", "--busy", "skip", "--json")
    assert code == 0
    changed = json.loads(out)["timer"]
    assert (changed["message"], changed["busy"]) == ("look", "skip")
    assert "limit_usd" not in changed
    assert "until" not in changed


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ((), "nothing about the timer is to change"),
        (("--cron", "61 * * * *"), "bad minute"),
        (("--every", "soon"), 'invalid interval "soon"'),
        (("--limit-usd", "1", "--no-limit"), "both set and cleared"),
    ],
)
def test_an_edit_that_cannot_be_gets_a_sentence(live, timer, order, said):
    code, _, err = live.zotctl("schedule", "edit", timer, *order)
    assert code != 0
    assert said in err
