"""Which directories are watched for sessions, and for how long."""

import threading

from zotd.workspace import session_checkpoints
from zotd.workspace.session_checkpoints import Baselines


def test_sessions_in_one_directory_share_what_is_known_of_it():
    known = Baselines()
    assert known.of("s_1", "/project") is known.of("s_2", "/project")
    assert known.of("s_1", "/project") is not known.of("s_3", "/other")


def test_a_directory_is_known_until_its_last_session_leaves():
    known = Baselines()
    first = known.of("s_1", "/project")
    known.of("s_2", "/project")
    known.leave("s_1", "/project")
    assert known.of("s_2", "/project") is first
    known.leave("s_2", "/project")
    assert known.of("s_2", "/project") is not first


def test_a_session_that_never_recorded_may_leave():
    known = Baselines()
    known.leave("s_1", "/project")
    assert known.of("s_1", "/project") is known.of("s_1", "/project")


def test_the_directory_that_was_not_used_for_longest_gives_way():
    known = Baselines()
    found = [known.of("s_1", f"/project/{number}") for number in range(session_checkpoints.MOST_WATCHED)]
    assert known.of("s_1", "/project/0") is found[0]
    known.of("s_1", "/more")
    assert known.of("s_1", "/project/0") is found[0]
    assert known.of("s_1", "/project/1") is not found[1]


def test_leaving_does_not_wait_for_a_recording():
    known = Baselines()
    with known.of("s_1", "/project").lock:
        known.leave("s_1", "/project")
        (closing,) = [one for one in threading.enumerate() if one.name == "end of the watch of /project"]
    closing.join(timeout=30)
    assert not closing.is_alive()
