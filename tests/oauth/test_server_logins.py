"""The file of logins to servers."""

import threading

import pytest

from zotd import private_file
from zotd.oauth.protocol import OAuthError, Problem, TokenSet
from zotd.oauth.server_logins import ServerLogin, ServerLoginFile


@pytest.fixture
def file(tmp_path):
    return ServerLoginFile(tmp_path / "logins.json")


LOGIN = ServerLogin(client_id="me", token_url="https://x/token", tokens=TokenSet("a", "r"))


def test_logins_are_kept_by_url_and_removed_one_by_one(file):
    assert file.read("https://a") is None
    assert not file.remove("https://a")
    file.write("https://a", LOGIN)
    file.write("https://b", LOGIN)
    assert file.read("https://b") == LOGIN
    assert file.remove("https://b")
    assert not file.remove("https://b")
    assert (file.read("https://a"), file.read("https://b")) == (LOGIN, None)


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [("{}", 0o644, "is open to other users; run: chmod 600 "), ("[]", 0o600, "is damaged ")],
)
def test_a_file_that_cannot_be_trusted_is_an_error(file, tmp_path, content, mode, why):
    (tmp_path / "logins.json").write_text(content)
    (tmp_path / "logins.json").chmod(mode)
    with pytest.raises(OAuthError, match=why) as caught:
        file.read("https://a")
    assert caught.value.problem is Problem.LOCAL


def test_a_link_to_another_file_is_not_followed(file, tmp_path):
    (tmp_path / "other").write_text("{}")
    (tmp_path / "logins.json").symlink_to(tmp_path / "other")
    with pytest.raises(OAuthError, match="cannot be read"):
        file.read("https://a")


def test_a_lock_that_is_not_free_in_time_is_given_up(tmp_path):
    held, release = threading.Event(), threading.Event()

    def hold():
        with private_file.locked(tmp_path / "a"):
            held.set()
            release.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait(20)
    with pytest.raises(TimeoutError), private_file.locked(tmp_path / "a", within_s=0.05):
        pass
    release.set()
    thread.join()
    with private_file.locked(tmp_path / "a", within_s=0.05):
        pass
