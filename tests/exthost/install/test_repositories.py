"""Extensions from git repositories, also from hostile ones."""

import asyncio
import shlex
import socketserver
import subprocess
import threading
from pathlib import Path

import pytest

from tests.exthost.install.conftest import manifest
from zotd.exthost.installed import InstallError, load, verify

LFS_POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12\n"


async def test_a_repository_is_fetched_at_its_head(place):
    repo = place.repo()
    commit = repo.commit(repo.file("main.sh", "#!/bin/sh", mode="100755"), repo.link("z", "main.sh"))
    done = await place.install(f"{place.url}/notes")
    assert (done.record.source, done.record.ref, done.record.commit) == (f"{place.url}/notes", "", commit)
    assert sorted(done.record.files) == ["extension.json", "main.sh", "z"]
    directory = done.manifest.directory
    assert (directory / "z").readlink() == Path("main.sh")
    assert (directory / "main.sh").stat().st_mode & 0o777 == 0o700
    assert place.words == [
        f"fetching {place.url}/notes",
        f"unpacking 3 files, 0 KiB, of commit {commit}",
    ]
    assert verify(place.home) == []


async def test_a_branch_a_tag_and_a_commit_can_be_asked_for(place):
    repo = place.repo()
    first = repo.commit(repo.file("a", "1"), branch="feature/x")
    second = repo.commit(repo.file("a", "2"))
    repo.git("tag", "-a", "v2", "-m", "x", second)
    for ref, commit in (("feature/x", first), ("v2", second), (first, first)):
        done = await place.install(f"{place.url}/notes#{ref}")
        assert (done.record.ref, done.record.commit) == (ref, commit)
    with pytest.raises(InstallError, match=r"was not installed: git could not get v3: fatal: .*v3"):
        await place.install(f"{place.url}/notes@v3")
    assert load(place.home).extensions["notes"] == done.record


async def test_a_tag_that_has_moved_is_reported(place):
    repo = place.repo()
    old = repo.commit(repo.file("a", "1"))
    repo.git("tag", "v1", old)
    await place.install(f"{place.url}/notes#v1")
    repo.git("tag", "-f", "v1", repo.commit(repo.file("a", "2")))
    again = await place.install(f"{place.url}/notes#v1")
    assert again.previous is not None
    assert again.previous.commit == old != again.record.commit


async def test_ssh_asks_for_nothing(place):
    repo = place.repo()
    repo.commit()
    bin_ = place.path / "bin"
    bin_.mkdir()
    # The other end of a connection, in place of the program that makes one.
    (bin_ / "ssh").write_text(f'#!/bin/sh\necho "$@" >>{place.path}/asked\nfor last; do :; done\neval "$last"\n')
    (bin_ / "ssh").chmod(0o755)
    place.env["PATH"] = f"{bin_}:{place.env['PATH']}"
    done = await place.install(f"ssh://git@example.org{repo.path}")
    assert done.manifest.name == "notes"
    assert "-oBatchMode=yes" in shlex.split((place.path / "asked").read_text())


async def test_the_git_protocol_is_understood(place):
    repo = place.repo()
    commit = repo.commit()

    class Daemon(socketserver.BaseRequestHandler):
        def handle(self):
            argv = ["git", "daemon", "--inetd", "--export-all", f"--base-path={place.remote}"]
            subprocess.run(argv, stdin=self.request, stdout=self.request, check=True)

    with socketserver.TCPServer(("127.0.0.1", 0), Daemon) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        done = await place.install(f"git://127.0.0.1:{server.server_address[1]}/notes")
        thread.join()
    assert done.record.commit == commit


async def test_nothing_that_the_user_has_configured_for_git_runs(place):
    """Their own repositories may want these; a stranger's must not be able to name them."""
    repo = place.repo()
    repo.commit(repo.file(".gitattributes", "* filter=evil diff=evil\n"), repo.file("main.sh", "as it is\r\n"))
    user = place.path / "user"
    (user / "template/hooks").mkdir(parents=True)
    run = f"touch {place.path}/ran"
    for hook in ("post-checkout", "reference-transaction", "post-merge"):
        (user / "template/hooks" / hook).write_text(f"#!/bin/sh\n{run}\n")
        (user / "template/hooks" / hook).chmod(0o755)
    (user / ".gitconfig").write_text(
        f"[init]\ntemplateDir = {user}/template\n[core]\nfsmonitor = {run}\nautocrlf = input\n"
        f'[filter "evil"]\nsmudge = {run}; cat\nrequired\n[diff "evil"]\ntextconv = {run}; cat\n'
        f'[credential]\nhelper = "!{run}"\n[url "ext::sh -c {run}"]\ninsteadOf = {place.url}\n'
    )
    for name in ("GIT_EXTERNAL_DIFF", "GIT_ASKPASS", "GIT_PROXY_COMMAND", "GIT_SSH_COMMAND", "GIT_TEMPLATE_DIR"):
        place.env[name] = run
    place.env |= {"GIT_DIR": str(repo.path), "GIT_CONFIG_COUNT": "1"}
    place.env |= {"GIT_CONFIG_KEY_0": "core.fsmonitor", "GIT_CONFIG_VALUE_0": run}

    done = await place.install(f"{place.url}/notes")

    assert not (place.path / "ran").exists()
    assert (done.manifest.directory / "main.sh").read_bytes() == b"as it is\r\n"


async def test_submodules_are_left_out_and_reported(place):
    repo = place.repo()
    modules = '[submodule "x"]\npath = "vendor\r"\nurl = file:///etc\nupdate = !touch ran\n'  # CVE-2025-48384
    commit = repo.commit(name="other", branch="other")
    repo.commit(repo.file(".gitmodules", modules), ("160000", "vendor\r", commit))
    done = await place.install(f"{place.url}/notes")
    assert sorted(done.record.files) == [".gitmodules", "extension.json"]
    assert place.words[1] == r"skipping submodules: vendor\r"


async def test_an_lfs_pointer_stays_a_pointer(place):
    repo = place.repo()
    repo.commit(repo.file(".gitattributes", "*.bin filter=lfs\n"), repo.file("x.bin", LFS_POINTER))
    done = await place.install(f"{place.url}/notes")
    assert (done.manifest.directory / "x.bin").read_text() == LFS_POINTER


def hostile_link(repo):
    return [repo.link("keys", "../../.ssh")]


def hostile_link_to_write_through(repo):
    return [repo.link("out", "/tmp"), ("40000", "out", repo.tree(repo.file("x", "pwned")))]


def hostile_parent(repo):
    return [("40000", "..", repo.tree(repo.file("x", "pwned")))]


def hostile_slash(repo):
    return [repo.file("../../x", "pwned")]


def hostile_newline(repo):
    return [repo.file("a\nb")]


def hostile_case(repo):
    return [repo.file("Foo"), repo.file("foo")]


def hostile_accents(repo):
    return [repo.file("\u00e9"), repo.file("e\u0301")]


def hostile_manifest(repo):
    return [repo.file("extension.json", manifest(description="x" * 2_000_000))]


def hostile_second_manifest(repo):
    return [repo.file("EXTENSION.json", manifest())]


def hostile_long_link(repo):
    return [repo.link("x", "y/" * 5000)]


def hostile_type(repo):
    return [("100644", "x", repo.tree())]


def hostile_trees(repo):
    """Ten directories in each of ten directories in each of ...: a hundred million files in a kilobyte."""
    tree = repo.tree(*(repo.file(f"f{number}") for number in range(10)))
    for _ in range(7):
        tree = repo.tree(*(("40000", f"d{number}", tree) for number in range(10)))
    return [("40000", "d", tree)]


@pytest.mark.parametrize(
    ("hostile", "reason"),
    [
        (hostile_link, r"the link 'keys' points outside of the directory, to '../../.ssh'"),
        (hostile_link_to_write_through, "are the same name on some file systems"),
        (hostile_parent, "the name '../x' in it cannot be used"),
        (hostile_slash, "the name '../../x' in it cannot be used"),
        (hostile_newline, r"the name 'a\\nb' in it cannot be used"),
        (hostile_case, "'foo' and 'Foo' in it are the same name on some file systems"),
        (hostile_accents, "are the same name on some file systems"),
        (hostile_manifest, "are the same name on some file systems"),
        (hostile_second_manifest, "are the same name on some file systems"),
        (hostile_long_link, "has a target that is too long"),
        (hostile_type, "git did not deliver the contents that it had listed"),
        (hostile_trees, "it has more than 200 MiB or 20000 files"),
    ],
)
async def test_a_hostile_repository_leaves_nothing_behind(hostile, reason, place):
    repo = place.repo()
    repo.commit(*hostile(repo))
    with pytest.raises(InstallError, match=f"^{place.url}/notes was not installed: .*{reason}"):
        await place.install(f"{place.url}/notes")
    assert place.holds_only()
    assert not (place.home / "x").exists()


async def test_git_asks_for_no_password(place):
    place.handler.status = 401
    with pytest.raises(InstallError, match=r"fatal: could not read Username .*: terminal prompts disabled"):
        await place.install(f"{place.url}/notes")


async def test_a_repository_that_is_not_there_is_told_in_a_sentence(place):
    with pytest.raises(InstallError, match=r"git could not get its HEAD: fatal: repository .* not found"):
        await place.install(f"{place.url}/nothing")
    assert place.holds_only()


async def test_a_machine_without_git_is_reported(place):
    place.env["PATH"] = str(place.path)
    with pytest.raises(InstallError, match="git cannot be started; install it"):
        await place.install(f"{place.url}/notes")


async def test_an_installation_can_be_given_up(place):
    place.handler.silent = True
    async with asyncio.TaskGroup() as group:
        task = group.create_task(place.install(f"{place.url}/notes"))
        await asyncio.to_thread(place.handler.asked.wait)
        task.cancel()
    assert task.cancelled()
    assert place.holds_only()


async def test_two_installations_at_once_are_two_after_each_other(place):
    repo = place.repo()
    repo.commit(*(repo.file(f"f{number}") for number in range(50)))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(place.install(f"{place.url}/notes")) for _ in range(4)]
    assert sum(task.result().previous is None for task in tasks) == 1
    assert verify(place.home) == []
    assert place.there()[0] == ".installing"
    assert len(place.there()) == 1 + 1 + 51
