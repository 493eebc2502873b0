import json
from pathlib import Path

import pytest

from zotd.exthost.discovery import discover, is_directory


@pytest.fixture
def place(tmp_path):
    """Makes an extension: `place("home/extensions/a", name="b")`; the name is the directory's by default."""

    def place(where, **fields):
        directory = tmp_path / where
        directory.mkdir(parents=True)
        (directory / "extension.json").write_text(json.dumps({"name": directory.name, "exec": "true", **fields}))
        return directory

    return place


@pytest.fixture
def find(tmp_path):
    def find(*explicit, trusted=True):
        return discover(
            explicit=explicit, cwd=tmp_path / "project", home=tmp_path / "home", is_trusted=lambda _: trusted
        )

    return find


def names(manifests):
    return [manifest.name for manifest in manifests]


GLOBAL, LOCAL = "home/extensions", "project/.zot/extensions"


def test_nothing_at_all_is_fine(find):
    found = find()
    assert (found.manifests, found.errors, found.is_untrusted) == ([], {}, False)


def test_the_order_is_explicit_then_project_then_home_each_by_directory(find, place):
    for name in ("b", "a", "c"):
        place(f"{GLOBAL}/{name}")
    place(f"{LOCAL}/z", name="first")
    place(f"{LOCAL}/y", name="second")
    explicit = [place("elsewhere/q"), place("elsewhere/p") / "extension.json"]
    assert names(find(*explicit).manifests) == ["q", "p", "second", "first", "a", "b", "c"]


def test_the_first_of_a_name_wins(find, place):
    place(f"{GLOBAL}/a")
    local = place(f"{LOCAL}/zz", name="a")
    found = find()
    assert [manifest.directory for manifest in found.manifests] == [local]
    assert [(one.manifest.directory.name, one.by) for one in found.shadowed] == [("a", local)]


def test_a_disabled_one_is_known_and_shadows_too(find, place):
    place(f"{LOCAL}/a", enabled=False)
    place(f"{GLOBAL}/a")
    found = find()
    assert (found.manifests, names(found.disabled), len(found.shadowed)) == ([], ["a"], 1)


def choose(tmp_path, content):
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home/extensions.json").write_text(content)
    (tmp_path / "home/extensions.json").chmod(0o600)


def test_the_user_s_choice_comes_before_the_author_s_everywhere(find, place, tmp_path):
    place(f"{GLOBAL}/a")
    place(f"{GLOBAL}/b", enabled=False)
    place(f"{LOCAL}/c")
    choose(tmp_path, '{"enabled": {"a": false, "b": true, "c": false, "gone": true}}')
    found = find()
    assert (names(found.manifests), names(found.disabled)) == (["b"], ["c", "a"])


def test_a_path_that_is_named_is_a_choice_of_its_own(find, place, tmp_path):
    choose(tmp_path, '{"enabled": {"a": false, "b": true}}')
    found = find(place("elsewhere/a"), place("elsewhere/b", enabled=False))
    assert (names(found.manifests), names(found.disabled)) == (["a"], ["b"])


@pytest.mark.parametrize(("content", "mode"), [("{", 0o600), ('{"enabled": {"a": 1}}', 0o600), ("{}", 0o622)])
def test_with_an_unreadable_list_of_choices_only_named_extensions_start(content, mode, find, place, tmp_path):
    place(f"{GLOBAL}/a")
    place(f"{LOCAL}/b")
    choose(tmp_path, content)
    (tmp_path / "home/extensions.json").chmod(mode)
    found = find(place("elsewhere/c"))
    assert (names(found.manifests), names(found.disabled)) == (["c"], ["b", "a"])
    assert [path.name for path in found.errors] == ["extensions.json"]
    assert "until then only extensions with an explicit path are started" in next(iter(found.errors.values()))


def test_an_explicit_path_that_is_found_again_is_the_same(find, place):
    assert find(place(f"{GLOBAL}/a")).shadowed == []


def test_python_modules_and_directories_without_a_manifest_are_no_extensions(find, place, tmp_path):
    place(f"{GLOBAL}/tools", name="x")
    place(f"{GLOBAL}/channels", name="y")
    (tmp_path / GLOBAL / "empty").mkdir()
    (tmp_path / GLOBAL / "file").write_text("")
    found = find()
    assert (found.manifests, found.errors) == ([], {})


def test_a_linked_directory_counts(find, place, tmp_path):
    (tmp_path / GLOBAL).mkdir(parents=True)
    (tmp_path / GLOBAL / "link").symlink_to(place("elsewhere/real"))
    assert names(find().manifests) == ["real"]


def test_a_bad_one_costs_only_itself(find, place):
    place(f"{GLOBAL}/a", exec=7)
    place(f"{GLOBAL}/b")
    found = find(Path("/nowhere"))
    assert names(found.manifests) == ["b"]
    assert [error.split(": ")[-1] for error in found.errors.values()] == [
        "no such file or directory",
        "expected `str`, got `int` in `exec`",
    ]


def test_an_untrusted_project_is_not_loaded(find, place):
    place(f"{LOCAL}/a", exec=7)
    place(f"{GLOBAL}/b")
    found = find(trusted=False)
    assert (names(found.manifests), found.errors, found.is_untrusted) == (["b"], {}, True)


def test_trust_is_not_asked_for_where_there_is_nothing_to_trust(find, place):
    place(f"{GLOBAL}/b")
    assert not find(trusted=False).is_untrusted


def test_the_home_is_no_project_of_its_own(place, tmp_path):
    place(".zot/extensions/a")
    found = discover(explicit=(), cwd=tmp_path, home=tmp_path / ".zot", is_trusted=lambda _: False)
    assert (names(found.manifests), found.is_untrusted) == (["a"], False)


def test_without_a_project_only_the_home_counts(place, tmp_path):
    place(f"{LOCAL}/a")
    place(f"{GLOBAL}/b")
    found = discover(explicit=(), cwd=None, home=tmp_path / "home", is_trusted=lambda _: True)
    assert names(found.manifests) == ["b"]


def test_a_location_that_leads_nowhere_is_reported(find, place, tmp_path):
    place(f"{GLOBAL}/b")
    (tmp_path / "project/.zot").mkdir(parents=True)
    (tmp_path / LOCAL).symlink_to("extensions")
    found = find()
    assert names(found.manifests) == ["b"]
    assert list(found.errors.values()) == [f"{tmp_path}/{LOCAL} cannot be read: too many levels of symbolic links"]


def test_an_unreadable_location_has_no_directory(tmp_path):
    assert is_directory(tmp_path)
    assert not is_directory(tmp_path / "nothing")
    assert not is_directory(tmp_path / ("x" * 5_000))
