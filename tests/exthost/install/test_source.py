"""What may be named, and what git is never given."""

import pytest

from zotd.exthost.installed import InstallError
from zotd.exthost.source import Directory, Repository, parse


@pytest.mark.parametrize(
    ("text", "location", "ref"),
    [
        ("https://h/a/b", "https://h/a/b", ""),
        ("https://h:8443/a/b.git#v1.2", "https://h:8443/a/b.git", "v1.2"),
        ("https://h/a/b@feature/x", "https://h/a/b", "feature/x"),
        ("https://h/@scope/b", "https://h/@scope/b", ""),
        ("https://h/a@b/c#main", "https://h/a@b/c", "main"),
        ("ssh://git@h/a", "ssh://git@h/a", ""),
        ("ssh://git@h/a@v1", "ssh://git@h/a", "v1"),
        ("git@h:a/b", "git@h:a/b", ""),
        ("git@h:a/b@v1", "git@h:a/b", "v1"),
        ("h:b#v1", "h:b", "v1"),
        ("git://h/a", "git://h/a", ""),
    ],
)
def test_a_url_may_name_a_ref(text, location, ref, tmp_path):
    assert parse(text, cwd=tmp_path) == Repository(location, ref)


@pytest.mark.parametrize(("text", "path"), [("a", "a"), ("./a:b", "a:b"), ("../x", "../x"), ("a/b:c", "a/b:c")])
def test_anything_else_is_a_path(text, path, tmp_path):
    assert parse(text, cwd=tmp_path) == Directory((tmp_path / path).resolve())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "--upload-pack=touch pwned",
        "-u",
        "ext::sh -c touch% pwned",
        "EXT::sh",
        "fd::17",
        "file:///etc",
        "FILE:///etc",
        "HTTPS://h/a",
        "ftp://h/a",
        "ssh://-oProxyCommand=touch/a",
        "ssh://-oProxyCommand=touch@h/a",
        "ssh://%2doProxyCommand=touch/a",
        "ssh://%2DoProxyCommand=touch@h/a",
        "ssh://git@%2doProxyCommand=touch/a",
        "https://h%2f@i/a",
        "-oProxyCommand=touch:a",
        "git@-oProxyCommand=touch:a",
        "https:///a",
        "https://h:port/a",
        "https://[/a",
        "https://user:secret@h/a",
        "https://token@h/a",
        "https://h/a#--upload-pack=x",
        "https://h/a#a:refs/heads/b",
        "https://h/a#+main",
        "https://h/a#a..b",
        "https://h/a#",
        "https://h/a@-x",
        "https://h/a\nb",
        "a\0b",
        "\x1b]52;",
        "x" * 5000,
    ],
)
async def test_what_git_could_misunderstand_is_refused_before_it_runs(text, place):
    with pytest.raises(InstallError):
        await place.install(text)
    assert list(place.home.iterdir()) == []
    assert not place.handler.asked.is_set()
