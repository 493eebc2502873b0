"""Where the tokens of logins are."""

import json
import os
import stat
import subprocess
import sys
import textwrap

import pytest

from tests.needs import needs
from zotd import logs
from zotd.core.ports import StorageError
from zotd.oauth.protocol import TokenSet
from zotd.store.logins import FILE, LoginStore, VendorLogin


def store(home, vault=None):
    return LoginStore(home, lambda: vault, prefers_vault=lambda: vault is not None)


def login(word="one", **options):
    return VendorLogin(account="me", tokens=TokenSet(f"access-{word}", refresh_token=f"refresh-{word}"), **options)


def test_a_login_is_stored_for_its_user_only_and_read_back(tmp_path):
    mine = store(tmp_path)
    assert (mine.read("copilot"), mine.stamp, dict(mine.listed())) == (None, None, {})
    mine.write("copilot", login())
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    assert mine.read("copilot") == login()
    before = mine.stamp
    mine.write("chatgpt", login("two"))
    assert mine.stamp != before
    assert dict(mine.listed()) == {"copilot": login(), "chatgpt": login("two")}


def test_stored_and_loaded_tokens_are_masked_in_the_log(tmp_path):
    store(tmp_path).write("copilot", login("secret-word", key=TokenSet("key-secret-word")))
    for word in ("access-secret-word", "refresh-secret-word", "key-secret-word"):
        assert word not in logs.masked(f"said {word}")


def test_a_login_is_removed_once(tmp_path):
    mine = store(tmp_path)
    mine.write("copilot", login())
    assert [mine.remove("copilot"), mine.remove("copilot")] == [True, False]
    assert mine.read("copilot") is None


@pytest.mark.parametrize("content", ["{", '{"copilot": 5}', "", '{"copilot": {"tokens": {}}}', "\ud800"])
def test_a_torn_file_is_named_and_stays(tmp_path, content):
    (tmp_path / FILE).write_bytes(content.encode(errors="surrogatepass"))
    (tmp_path / FILE).chmod(0o600)
    for act in (lambda: store(tmp_path).read("copilot"), lambda: store(tmp_path).write("copilot", login())):
        with pytest.raises(StorageError, match=r"logins\.json is damaged .*; delete it and log in again"):
            act()
    assert (tmp_path / FILE).read_bytes() == content.encode(errors="surrogatepass")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_file_that_others_can_read_is_refused(tmp_path):
    store(tmp_path).write("copilot", login())
    (tmp_path / FILE).chmod(0o644)
    with pytest.raises(StorageError, match="chmod 600"):
        store(tmp_path).read("copilot")


def test_a_write_that_is_killed_at_any_moment_leaves_the_old_or_the_new_login(tmp_path):
    store(tmp_path).write("copilot", login("old"))
    program = textwrap.dedent(
        """
        import os, pathlib, sys
        from zotd.oauth.protocol import TokenSet
        from zotd.store.logins import LoginStore, VendorLogin

        at, count = int(sys.argv[2]), 0

        def audited(event, args):
            global count
            if event in ("open", "os.rename", "os.truncate", "os.remove", "tempfile.mkstemp", "fcntl.flock"):
                count += 1
                if count == at:
                    os._exit(9)

        store = LoginStore(pathlib.Path(sys.argv[1]), lambda: None, prefers_vault=lambda: False)
        sys.addaudithook(audited)
        store.write("copilot", VendorLogin(account="me", tokens=TokenSet("access-new", refresh_token="refresh-new")))
        """
    )
    seen, at = [], 0
    while at < 40:
        at += 1
        store(tmp_path).write("copilot", login("old"))
        ended = subprocess.run([sys.executable, "-c", program, str(tmp_path), str(at)], check=False, timeout=60)
        found = store(tmp_path).read("copilot")
        assert found in {login("old"), login("new")}
        seen.append(found.tokens.access_token)
        if ended.returncode == 0:
            break
    assert len(seen) > 4
    assert {"access-old", "access-new"} == set(seen)


def test_a_directory_that_cannot_be_written_fails_before_tokens_are_requested(tmp_path):
    if os.geteuid() == 0:  # root may write everywhere; a full disk is refused to root as well
        needs("mount", "umount")
    home = tmp_path / "home"
    home.mkdir()
    (home / FILE).write_text("{}")
    (home / FILE).chmod(0o600)
    with ReadOnly(home), pytest.raises(StorageError, match="cannot be written"), store(home).reserved():
        pytest.fail("tokens would be requested now")


class ReadOnly:
    """A directory that cannot be written: by its permissions, or for root by being mounted so."""

    def __init__(self, path):
        self.path = path

    def __enter__(self):
        if os.geteuid() != 0:
            self.path.chmod(0o500)
        elif subprocess.run(
            ["mount", "--bind", "-o", "ro", self.path, self.path], capture_output=True, check=False
        ).returncode:
            pytest.skip("this machine has no mount for root")

    def __exit__(self, *_):
        if os.geteuid() != 0:
            self.path.chmod(0o700)
        else:
            subprocess.run(["umount", self.path], check=True)


class MemoryVault(dict[str, str]):
    """A vault in this process."""

    def read(self, name):
        return self.get(name)

    def write(self, name, secret):
        self[name] = secret

    def remove(self, name):
        self.pop(name, None)


def test_with_a_vault_the_file_has_no_token(tmp_path):
    vault = MemoryVault()
    mine = store(tmp_path, vault)
    mine.write("copilot", login("hidden"))
    assert "hidden" not in (tmp_path / FILE).read_text()
    assert json.loads((tmp_path / FILE).read_text())["copilot"]["place"] == "keyring"
    assert mine.listed()["copilot"].account == "me"
    assert mine.read("copilot").tokens == login("hidden").tokens
    assert mine.remove("copilot")
    assert vault == {}


def test_a_login_in_a_vault_that_is_missing_says_what_to_do(tmp_path):
    store(tmp_path, MemoryVault()).write("copilot", login())
    with pytest.raises(StorageError, match=r"keyring, which cannot be used here: .* or run: zotctl login copilot"):
        store(tmp_path).read("copilot")


def test_a_vault_that_was_emptied_is_no_login(tmp_path):
    vault = MemoryVault()
    store(tmp_path, vault).write("copilot", login())
    vault.clear()
    assert store(tmp_path, vault).read("copilot") is None
