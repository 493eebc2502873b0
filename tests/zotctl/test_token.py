"""`zotctl token`."""

import json
import stat

import pytest


@pytest.fixture
def create(live):
    def create(*args):
        code, out, err = live.zotctl("token", "create", *args)
        assert code == 0, err
        return out

    return create


def test_a_token_is_printed_once_listed_and_revoked(live, create):
    token = create("phone", "--role", "approve", "--expires", "30d").strip()
    assert token.startswith("zot_")
    code, out, _ = live.zotctl("token", "list")
    assert code == 0
    head, row = (line.split() for line in out.splitlines())
    assert head == ["NAME", "ROLE", "EXPIRES", "LAST", "USED", "SESSIONS"]
    assert (row[0], row[1], row[4:]) == ("phone", "approve", ["never", "all"])
    assert token not in out + live.daemon.log
    assert live.zotctl("token", "revoke", "phone")[0] == 0
    assert json.loads(live.zotctl("token", "list", "--json")[1]) == {"v": 1, "tokens": []}
    code, _, err = live.zotctl("token", "revoke", "phone")
    assert (code, err) == (1, 'zotctl: there is no token "phone"; token.list names them\n')


def test_a_token_goes_into_a_file_that_only_its_user_can_read_and_replaces_none(live, create):
    path = live.cwd / "phone.token"
    out = create("phone", "--out", str(path))
    assert out == f'wrote the token "phone" to {path}\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_text().startswith("zot_")
    before = path.read_text()
    code, _, err = live.zotctl("token", "create", "board", "--out", str(path))
    assert (code, err) == (1, f"zotctl: cannot create {path}: File exists; no token was created\n")
    assert path.read_text() == before
    assert len(json.loads(live.zotctl("token", "list", "--json")[1])["tokens"]) == 1
    other = live.cwd / "other.token"
    code, _, err = live.zotctl("token", "create", "phone", "--out", str(other))
    assert code == 1
    assert 'a token "phone" exists already' in err
    assert not other.exists()


def test_a_token_for_a_session_names_it(live, create):
    session = live.session()
    made = json.loads(create("guest", "--session", "tests", "--json"))
    assert (made["v"], made["sessions"], made["role"]) == (1, [session], "read")


@pytest.mark.parametrize("word", ["30", "d", "-1d", "1y", "٣d", "", "9" * 400 + "d"])
def test_a_lifetime_that_cannot_be_read_is_refused_before_anything_happens(shell, word):
    code, _, err = shell.zotctl("token", "create", "phone", f"--expires={word}")
    assert code == 2
    assert f'invalid lifetime "{word}"; use a form such as 30m' in err
