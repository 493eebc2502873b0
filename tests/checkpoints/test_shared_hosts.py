"""A shared repository on another machine, over https and ssh: which logins work, and that nobody is ever asked for one."""

import os
import subprocess

import pytest

from tests.checkpoints.boxes import Site, worked
from tests.checkpoints.conftest import git
from tests.checkpoints.git_host import PASSWORD, USER, serving
from tests.client.ssh_host import SSHD, SshHost
from tests.needs import needs
from zotd.checkpoints.errors import CheckpointError


async def refusal(site):
    """Why the files of a session cannot be brought or stored."""
    site.work.mkdir(exist_ok=True)
    with pytest.raises(CheckpointError) as error:
        await site.sync().arrive()
    return str(error.value)


# --- https ---------------------------------------------------------------------------------------------------


@pytest.fixture
def host(tmp_path):
    needs("git")
    with serving(tmp_path / "host") as host:
        yield host


@pytest.fixture
def pair(tmp_path, host):
    return [Site(tmp_path, name, host.url) for name in ("box1", "box2")]


async def test_over_https_files_follow_with_a_login_of_a_credential_helper(pair, host):
    one, two = pair
    for site in pair:
        host.introduce(site.work.parent, PASSWORD)
    await worked(one, a="1", big="x" * 200_000)
    await two.sync().arrive()
    assert two.files() == one.files()
    assert PASSWORD not in git(host.repository, "log", "--all", "--format=%B%an%ae")


async def test_a_login_may_be_in_netrc(pair, host):
    one, two = pair
    for site in pair:
        host.introduce(site.work.parent)
        (site.work.parent / ".netrc").write_text(f"machine 127.0.0.1 login {USER} password {PASSWORD}\n")
    await worked(one, a="1")
    await two.sync().arrive()
    assert two.files() == {"a": "1"}


async def test_a_wrong_password_is_a_sentence_without_it(pair, host):
    one, _ = pair
    host.introduce(one.work.parent, "wr0ng-secret")
    said = await refusal(one)
    assert said == f"git ls-remote: Authentication failed for '{host.url}/'"


async def test_without_a_login_nobody_is_asked_and_the_sentence_says_what_is_missing(pair, host):
    one, _ = pair
    host.introduce(one.work.parent)
    wants = f"{host.url} wants a login, and no credential helper of git has one; see `git help credentials`"
    assert await refusal(one) == wants
    host.introduce(one.work.parent, PASSWORD)
    await worked(one, a="1")


async def test_a_program_that_asks_for_passwords_in_a_window_is_not_run(pair, host, tmp_path):
    one, _ = pair
    asking = tmp_path / "askpass"
    asking.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\nread answer < {tmp_path}/never\n")
    asking.chmod(0o755)
    os.mkfifo(tmp_path / "never")
    host.introduce(one.work.parent, core_askPass=asking)
    one.env |= {"GIT_ASKPASS": str(asking), "SSH_ASKPASS": str(asking), "DISPLAY": ":0"}
    assert "wants a login" in await refusal(one)
    assert not (tmp_path / "asked").exists()


async def test_an_unknown_authority_is_a_sentence(pair, host):
    one, _ = pair
    said = await refusal(one)
    assert said.startswith(f"git ls-remote: unable to access '{host.url}/': ")
    assert "certificate" in said


# --- ssh -----------------------------------------------------------------------------------------------------


@pytest.fixture
def box(tmp_path):
    needs("git", SSHD, "ssh", "ssh-keygen")
    box = SshHost(tmp_path / "ssh", {"HOME": str(tmp_path)}, greeting="")
    git(tmp_path, "init", "-q", "--bare", str(tmp_path / "shared.git"))
    with box.running():
        yield box


@pytest.fixture(params=["box:{}", "ssh://box{}"])
def reached(request, tmp_path, box):
    """Two machines that reach the repository by ssh."""
    found = []
    for name in ("box1", "box2"):
        site = Site(tmp_path, name, request.param.format(tmp_path / "shared.git"))
        site.env["PATH"] = f"{box.bin}:{site.env['PATH']}"
        found.append(site)
    return found


async def test_over_ssh_files_follow_with_a_key(reached):
    one, two = reached
    await worked(one, a="1")
    await two.sync().arrive()
    assert two.files() == {"a": "1"}


async def test_an_unknown_host_and_an_unknown_key_are_sentences_and_nobody_is_asked(reached, box):
    one, _ = reached
    box.known.write_text("")
    assert await refusal(one) == "git ls-remote: Host key verification failed."
    box.know()
    (box.folder / "authorized_keys").write_text("")
    assert "Permission denied (publickey" in await refusal(one)


async def test_a_key_with_a_passphrase_needs_an_agent(reached, box):
    one, _ = reached
    lock(box)
    assert "Permission denied" in await refusal(one)


def lock(box):
    """Give the key a passphrase."""
    change = ["ssh-keygen", "-q", "-p", "-P", "", "-N", "a passphrase", "-f", str(box.folder / "user")]
    subprocess.run(change, check=True, stdout=subprocess.DEVNULL)


async def test_what_the_other_side_refuses_is_told_with_its_reason(reached, tmp_path):
    one, _ = reached
    hook = tmp_path / "shared.git" / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho no room >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(CheckpointError, match=r"^git push: \[remote rejected\] .* \(pre-receive hook declined\)$"):
        await worked(one, a="1")


async def test_a_repository_that_is_missing_is_a_sentence(reached, tmp_path):
    one, _ = reached
    (tmp_path / "shared.git").rename(tmp_path / "elsewhere")
    assert "does not appear to be a git repository" in await refusal(one)
