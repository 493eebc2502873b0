import os
import resource
import signal
import stat

import pytest


async def test_a_new_file_is_made_with_its_directories(call, cwd):
    assert await call("write", {"path": "a/b/c.txt", "content": "héllo\n"}) == ("Created a/b/c.txt (7 bytes)", False)
    assert (cwd / "a/b/c.txt").read_bytes() == "héllo\n".encode()


async def test_a_file_is_replaced_and_keeps_its_mode(call, cwd):
    path = cwd / "run.sh"
    path.write_text("old")
    path.chmod(0o751)
    assert await call("write", {"path": "run.sh", "content": "new"}) == ("Replaced run.sh (3 bytes)", False)
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o751


async def test_a_new_file_gets_its_mode_from_the_umask(call, cwd):
    old = os.umask(0o027)
    try:
        await call("write", {"path": "a.txt", "content": ""})
    finally:
        os.umask(old)
    assert stat.S_IMODE((cwd / "a.txt").stat().st_mode) == 0o640


async def test_a_reader_of_the_old_file_sees_it_whole(call, cwd):
    (cwd / "a.txt").write_text("old")
    with (cwd / "a.txt").open() as reader:
        await call("write", {"path": "a.txt", "content": "new"})
        assert reader.read() == "old"


@pytest.mark.parametrize("exists", [True, False])
async def test_a_symbolic_link_stays_and_its_target_is_written(call, cwd, tmp_path, exists):
    target = tmp_path / "elsewhere.txt"
    if exists:
        target.write_text("old")
    (cwd / "link").symlink_to(target)
    await call("write", {"path": "link", "content": "new"})
    assert (cwd / "link").is_symlink()
    assert target.read_text() == "new"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("folder", "is not a regular file"),
        ("fifo", "is not a regular file"),
        ("loop", "symbolic link"),
        ("file/below", "not a directory"),
        ("x" * 300, "file name too long"),
        ("/proc/nothing", "no such file or directory"),
    ],
)
async def test_what_cannot_be_written_is_an_outcome_and_leaves_nothing(call, cwd, name, reason):
    (cwd / "folder").mkdir()
    (cwd / "file").touch()
    (cwd / "loop").symlink_to("loop")
    os.mkfifo(cwd / "fifo")
    text, is_error = await call("write", {"path": name, "content": "x"})
    assert is_error
    assert reason in text.lower()
    assert sorted(path.name for path in cwd.iterdir()) == ["fifo", "file", "folder", "loop"]


async def test_a_full_disk_is_an_outcome_and_costs_neither_the_old_file_nor_a_draft(call, cwd):
    """A file size limit gives the same failure of `write` as a full disk, to a process that ignores SIGXFSZ."""
    (cwd / "a.txt").write_text("old")
    old_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    old_handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024, old_limit[1]))
    try:
        text, is_error = await call("write", {"path": "a.txt", "content": "x" * 5_000})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old_limit)
        signal.signal(signal.SIGXFSZ, old_handler)
    assert (text, is_error) == ("cannot write the file: file too large", True)
    assert (cwd / "a.txt").read_text() == "old"
    assert [path.name for path in cwd.iterdir()] == ["a.txt"]


async def test_half_a_surrogate_pair_is_refused(call):
    text, is_error = await call("write", {"path": "a.txt", "content": "\ud800"})
    assert is_error
    assert text.startswith("bad arguments of write")
