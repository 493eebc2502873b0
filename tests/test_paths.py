"""Where files live."""

import os
import pwd
import stat
import sys
from pathlib import Path

import pytest

from zotd import paths

OWN = pwd.getpwuid(os.geteuid()).pw_dir
"""The user's home, whatever variables say."""


def test_two_homes_never_share_a_socket(tmp_path):
    one = paths.socket_path({"ZOT_HOME": str(tmp_path / "one"), "XDG_RUNTIME_DIR": str(tmp_path)})
    two = paths.socket_path({"ZOT_HOME": str(tmp_path / "two"), "XDG_RUNTIME_DIR": str(tmp_path)})
    assert one == str(tmp_path / "one/run/zotd.sock")
    assert two == str(tmp_path / "two/run/zotd.sock")


def test_the_named_socket_wins(tmp_path):
    env = {"ZOTD_SOCKET": str(tmp_path / "s"), "ZOT_HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    assert paths.socket_path(env) == str(tmp_path / "s")


def test_without_a_home_the_socket_is_in_the_runtime_directory(tmp_path):
    assert paths.socket_path({"XDG_RUNTIME_DIR": str(tmp_path)}) == str(tmp_path / "zot/zotd.sock")


@pytest.mark.parametrize("runtime", ["", "run/user", "/nonexistent"])
def test_a_runtime_directory_that_cannot_be_used_falls_back_to_tmpdir(tmp_path, runtime):
    env = {"XDG_RUNTIME_DIR": runtime, "TMPDIR": str(tmp_path), "HOME": OWN}
    assert paths.socket_path(env) == str(tmp_path / f"zot-{os.geteuid()}/zotd.sock")


def test_a_tmpdir_that_cannot_be_used_falls_back_to_tmp():
    assert paths.socket_path({"TMPDIR": "/nonexistent", "HOME": OWN}) == f"/tmp/zot-{os.geteuid()}/zotd.sock"


def test_two_users_homes_never_share_a_socket_in_a_temporary_directory(tmp_path):
    own, one, two, same = (
        paths.socket_path({"TMPDIR": str(tmp_path), **env})
        for env in (
            {"HOME": OWN},
            {"HOME": "/home/one"},
            {"HOME": "/home/two"},
            {"HOME": OWN, "XDG_STATE_HOME": "/home/one/.local/state"},
        )
    )
    assert own == str(tmp_path / f"zot-{os.geteuid()}/zotd.sock")  # where it always was
    assert len({own, one, two}) == 3
    assert same == one


def test_a_long_path_becomes_a_hashed_name_that_differs_by_home(tmp_path):
    long = tmp_path / ("d" * 100)
    env = {"XDG_RUNTIME_DIR": str(tmp_path)}
    one = paths.socket_path(env | {"ZOT_HOME": str(long / "one")})
    two = paths.socket_path(env | {"ZOT_HOME": str(long / "two")})
    assert one != two
    assert Path(one).parent == tmp_path / "zot"
    assert len(one.encode()) <= paths.MAX_SOCKET_PATH


def test_the_limit_counts_bytes_not_characters(tmp_path):
    home = "/h/" + "é" * 45
    assert len(home) < paths.MAX_SOCKET_PATH < len(f"{home}/run/zotd.sock".encode())
    path = paths.socket_path({"ZOT_HOME": home, "XDG_RUNTIME_DIR": str(tmp_path)})
    assert Path(path).parent == tmp_path / "zot"


def test_a_long_path_in_a_long_runtime_directory_ends_in_tmp(tmp_path):
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    path = paths.socket_path({"XDG_RUNTIME_DIR": str(deep), "TMPDIR": str(deep)})
    assert str(Path(path).parent) == f"/tmp/zot-{os.geteuid()}"


def test_two_spellings_of_a_long_home_meet(tmp_path):
    real = tmp_path / ("d" * 100)
    real.mkdir()
    other = tmp_path / ("l" * 100)
    other.symlink_to(real)
    env = {"XDG_RUNTIME_DIR": str(tmp_path)}
    assert paths.socket_path(env | {"ZOT_HOME": str(real)}) == paths.socket_path(env | {"ZOT_HOME": str(other)})


def test_the_home_follows_the_state_directory(tmp_path):
    assert paths.zot_home({"XDG_STATE_HOME": str(tmp_path)}) == str(tmp_path / "zot")
    assert paths.zot_home({"XDG_STATE_HOME": "relative", "HOME": "/home/me"}) == "/home/me/.local/state/zot"
    assert paths.zot_home({"ZOT_HOME": str(tmp_path)}) == str(tmp_path)


def test_a_missing_directory_and_its_parents_are_made_private(tmp_path):
    path = tmp_path / "a" / "b"
    paths.check_private_dir(str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_an_open_directory_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "open"
    path.mkdir()
    path.chmod(0o755)
    with pytest.raises(paths.UnsafePathError, match="open to other users"):
        paths.check_private_dir(str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o755


def test_a_symbolic_link_is_refused(tmp_path):
    (tmp_path / "real").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with pytest.raises(paths.UnsafePathError, match="symbolic link"):
        paths.check_private_dir(str(tmp_path / "link"))


def test_a_file_in_the_way_is_refused_by_name(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(paths.UnsafePathError, match="file"):
        paths.check_private_dir(str(tmp_path / "file"))
    with pytest.raises(paths.UnsafePathError, match="file"):
        paths.check_private_dir(str(tmp_path / "file" / "below"))


def test_another_users_directory_is_refused(tmp_path):
    path = tmp_path / "theirs"
    path.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
    else:
        path = "/root"
    with pytest.raises(paths.UnsafePathError, match="belongs to user"):
        paths.check_private_dir(str(path))


def test_sessions_of_channels_work_outside_of_what_jails_hide():
    table = [
        ({"HOME": "/home/one"}, "/home/one/.local/share/zot/channels"),
        ({"HOME": "/home/one", "XDG_DATA_HOME": "/data"}, "/data/zot/channels"),
        ({"HOME": "/home/one", "XDG_DATA_HOME": "data"}, "/home/one/.local/share/zot/channels"),
    ]
    for env, folder in table:
        if sys.platform != "darwin" or "/data" in folder:
            assert paths.channels_dir(env) == folder
            assert not folder.startswith(paths.zot_home(env))
