"""The warning about the mode `yolo`: when it is shown, and when not again."""

import pytest

from zotd.client.yolo_warning import WARNING, yolo_warning


@pytest.fixture
def env(tmp_path):
    return {"ZOT_HOME": str(tmp_path / "zot")}


def shown(env, mode="yolo", *, is_asked_for=False):
    return yolo_warning({"mode": mode}, is_asked_for=is_asked_for, env=env)


def test_a_flag_shows_it_each_time(env):
    assert [shown(env, is_asked_for=True) for _ in range(2)] == [WARNING, WARNING]


def test_a_configuration_shows_it_once_for_each_home(env, tmp_path):
    assert [shown(env) for _ in range(3)] == [WARNING, "", ""]
    assert shown({"ZOT_HOME": str(tmp_path / "other")}) == WARNING


def test_a_user_whom_a_flag_has_warned_is_not_warned_again_by_a_configuration(env):
    shown(env, is_asked_for=True)
    assert shown(env) == ""


@pytest.mark.parametrize("mode", ["workspace", "ask", "read-only"])
def test_other_modes_have_no_warning_and_leave_no_mark(env, mode, tmp_path):
    assert shown(env, mode) == ""
    assert not (tmp_path / "zot").exists()


def test_a_home_that_cannot_be_written_shows_it_each_time(tmp_path):
    (tmp_path / "file").touch()
    env = {"ZOT_HOME": str(tmp_path / "file" / "zot")}
    assert [shown(env), shown(env)] == [WARNING, WARNING]
