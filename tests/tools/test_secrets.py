"""No tool of ours shows keys, tokens or transcripts of `$ZOT_HOME`, by whatever name."""

import os

import pytest

from zotd.tools.shared.files import SECRETS


@pytest.fixture
def home(tmp_path):
    folder = tmp_path / "zot"
    folder.mkdir()
    for name in SECRETS:
        (folder / name).write_text("sk-secret")
    (folder / "notes.txt").write_text("sk-secret too")
    return folder


@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("way", ["plain", "symlink", "hard link", "dots"])
async def test_read_and_grep_refuse_a_secret_of_the_home(call, cwd, home, name, way):
    path = {"dots": home / ".." / "zot" / name}.get(way, home / name)
    if way == "symlink":
        path = cwd / "harmless.txt"
        path.symlink_to(home / name)
    elif way == "hard link":
        path = cwd / "harmless.txt"
        os.link(home / name, path)
    for tool, args in {"read": {"path": str(path)}, "grep": {"path": str(path), "pattern": "sk"}}.items():
        said, is_error = await call(tool, args, home=str(home))
        assert is_error, tool
        assert "contains keys or transcripts of zot, which tools cannot read" in said
        assert "sk-secret" not in said


@pytest.mark.parametrize("has_ripgrep", [True, False])
async def test_grep_of_the_home_leaves_its_secrets_out(call, home, has_ripgrep):
    env = {"PATH": os.environ["PATH"] if has_ripgrep else "/nowhere"}
    said, is_error = await call("grep", {"path": str(home), "pattern": "sk-"}, home=str(home), env=env)
    assert not is_error
    assert "notes.txt:1:sk-secret too" in said
    assert not any(name in said for name in SECRETS)


@pytest.mark.parametrize("path", ["/dev/null", "/dev/tty"])
async def test_what_has_no_end_is_refused_with_a_reason(call, path):
    said, is_error = await call("read", {"path": path})
    assert is_error
    assert path in said


async def test_a_kernel_file_that_gives_nothing_now_is_no_fault_of_ours(call):
    for _ in range(2):  # for root, the second time it has nothing more to say
        said, _ = await call("read", {"path": "/proc/kmsg"})
        assert said


async def test_the_file_with_long_output_is_private_under_any_umask(call, tmp_path):
    old = os.umask(0)
    try:
        await call("bash", {"command": "seq 100000"}, out_dir=str(tmp_path / "new" / "out"))
    finally:
        os.umask(old)
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("new", "new/out")] == [0o700, 0o700]
