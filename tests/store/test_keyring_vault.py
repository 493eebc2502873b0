"""The system's keyring, with a backend that keeps secrets in a file."""

import subprocess
import sys

import pytest

from zotd.core.ports import StorageError
from zotd.store.keyring_vault import KeyringVault
from zotd.testing.file_keyring import VARIABLE, FileKeyring


@pytest.fixture
def backend(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "ring"))
    return FileKeyring()


def test_each_home_has_secrets_of_its_own(tmp_path, backend):
    mine, other = KeyringVault(backend, tmp_path / "a"), KeyringVault(backend, tmp_path / "b")
    mine.write("copilot", "secret")
    assert (mine.read("copilot"), other.read("copilot")) == ("secret", None)
    other.remove("copilot")
    mine.remove("copilot")
    mine.remove("copilot")
    assert mine.read("copilot") is None


def test_a_locked_keyring_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "ring.locked"))
    vault = KeyringVault(FileKeyring(), tmp_path)
    for act in (lambda: vault.read("x"), lambda: vault.write("x", "y"), lambda: vault.remove("x")):
        with pytest.raises(StorageError, match=r"keyring cannot be .*: the keyring is locked; unlock it"):
            act()


LOOK = "import pathlib, zotd.store.keyring_vault as v; print(type(v.find(pathlib.Path('/x'))).__name__)"


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        ("zotd.testing.file_keyring.FileKeyring", "KeyringVault"),
        ("keyring.backends.fail.Keyring", "NoneType"),
        ("keyring.backends.null.Keyring", "NoneType"),
        ("no.such.Backend", "NoneType"),
    ],
)
def test_a_keyring_is_used_only_if_it_works(tmp_path, chosen, found):
    env = {"PYTHON_KEYRING_BACKEND": chosen, "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", LOOK], env=env, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == found


def test_without_the_package_there_is_none(tmp_path):
    program = f"import sys; sys.modules['keyring'] = None; {LOOK}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "NoneType"
