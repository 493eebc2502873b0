import os

import pytest

from tests.jail.conftest import git, repository
from zotd.jail import JailError
from zotd.jail.places import CACHES, SECRETS, located


def test_the_working_directory_the_temporary_directory_and_caches_are_writable(person):
    policy = person.policy()
    assert policy.writable[0] == str(person.work)
    assert policy.may_write(str(person.work / "a" / "b"))
    assert policy.may_write(str(person.root / "tmp" / "x"))
    assert policy.may_write(str(person.home / ".cache" / "pip" / "x"))


@pytest.mark.parametrize("path", [".bashrc", ".config/x", "other/x", "workshop", ".profile"])
def test_the_rest_of_the_home_is_readable_only(person, path):
    policy = person.policy()
    assert policy.may_read(str(person.home / path))
    assert not policy.may_write(str(person.home / path))


@pytest.mark.parametrize(
    "path", [".ssh/id", ".zot/auth.json", ".netrc", ".config/gcloud/credentials.db", ".aws/absent"]
)
def test_secrets_can_be_neither_read_nor_changed(person, path):
    policy = person.policy()
    assert not policy.may_read(str(person.home / path))
    assert not policy.may_write(str(person.home / path))


def test_every_secret_and_no_cache_is_hidden(person):
    policy = person.policy()
    home = str(person.home)
    assert [path for path in located(SECRETS, person.env, home) if policy.may_read(path)] == []
    assert [path for path in located(CACHES, person.env, home) if not policy.may_read(path)] == []


def test_what_is_shown_of_something_hidden_may_be_read_but_not_changed(person):
    skills = person.home / ".zot" / "skills"
    policy = person.policy(shown=[skills])
    assert policy.may_read(str(skills / "release" / "SKILL.md"))
    assert not policy.may_write(str(skills / "release" / "SKILL.md"))
    assert not policy.may_read(str(person.home / ".zot" / "auth.json"))


@pytest.mark.parametrize("path", ["home/.zot", "home/.ssh/..", "home/notes", "home"])
def test_only_what_lies_in_something_hidden_can_be_shown(person, path):
    assert person.policy(shown=[person.root / path]).shown == ()


def test_a_secret_behind_a_link_is_hidden_where_it_is(person):
    kept = person.root / "vault"
    (person.home / ".ssh").rename(kept)
    (person.home / ".ssh").symlink_to(kept)
    assert not person.policy().may_read(str(kept / "id"))


def test_variables_of_the_user_name_the_places(person):
    moved = person.root / "elsewhere"
    for name in ("cache", "config/gcloud"):
        (moved / name).mkdir(parents=True)
    policy = person.policy(XDG_CACHE_HOME=str(moved / "cache"), XDG_CONFIG_HOME=str(moved / "config"))
    assert policy.may_write(str(moved / "cache" / "x"))
    assert not policy.may_read(str(moved / "config" / "gcloud" / "x"))


def test_a_relative_value_of_a_variable_is_not_used(person):
    assert person.policy(XDG_CACHE_HOME="cache") == person.policy()


@pytest.mark.parametrize("variable", ["TMPDIR", "XDG_CACHE_HOME", "npm_config_cache"])
@pytest.mark.parametrize("where", ["home", ".", "/"])
def test_no_variable_makes_the_home_writable(person, variable, where):
    value = os.path.normpath(person.root / where)
    policy = person.policy(**{variable: value})
    assert not policy.may_write(str(person.home / ".bashrc"))


def test_a_link_that_a_command_has_put_into_a_cache_makes_nothing_writable(person):
    (person.home / "other").mkdir()
    (person.home / ".cache" / "pip").symlink_to(person.home / "other")
    policy = person.policy(PIP_CACHE_DIR=str(person.home / ".cache" / "pip"))
    assert not policy.may_write(str(person.home / "other" / "x"))


@pytest.mark.parametrize(
    ("cwd", "reason"),
    [
        ("home", "is your home directory"),
        (".", "contains your home directory"),
        ("/", "contains your home directory"),
        ("home/.ssh", "has to be hidden"),
        ("home/.ssh/below", "has to be hidden"),
        ("home/.zot/channels", "has to be hidden"),
        ("home/.config", "has to be hidden"),
    ],
)
def test_a_working_directory_that_opens_what_must_be_kept_has_no_jail(person, cwd, reason):
    folder = (person.root / cwd).resolve()
    folder.mkdir(exist_ok=True)
    with pytest.raises(JailError, match=reason):
        person.policy(folder)


def test_a_working_directory_behind_a_link_has_no_jail(person):
    (person.home / "link").symlink_to(person.work)
    with pytest.raises(JailError, match="leads through a link"):
        person.policy(person.home / "link")


def test_a_read_only_working_directory_has_a_policy_as_any_other(person):
    person.work.chmod(0o500)
    assert person.policy().writable[0] == str(person.work)


def test_without_a_repository_nothing_of_git_is_special(person):
    policy = person.policy()
    assert (policy.carved, policy.protected) == ((), ())


def test_hooks_and_configuration_of_the_repository_are_protected(person):
    repository(person.work)
    policy = person.policy()
    assert policy.may_write(str(person.work / ".git" / "index.lock"))
    assert not policy.may_write(str(person.work / ".git" / "config"))
    assert not policy.may_write(str(person.work / ".git" / "hooks" / "pre-commit"))


def test_a_repository_above_the_working_directory_can_be_committed_to(person):
    repository(person.work)
    below = person.work / "src" / "lib"
    below.mkdir(parents=True)
    policy = person.policy(below)
    assert policy.may_write(str(person.work / ".git" / "objects" / "x"))
    assert not policy.may_write(str(person.work / ".git" / "hooks" / "x"))
    assert not policy.may_write(str(person.work / "README"))


def test_a_repository_without_hooks_gets_an_empty_directory_for_them(person):
    hooks = repository(person.work) / ".git" / "hooks"
    for sample in hooks.iterdir():
        sample.unlink()
    hooks.rmdir()
    assert str(hooks) in person.policy().protected
    assert list(hooks.iterdir()) == []


def test_a_worktree_can_be_committed_to_and_not_led_elsewhere(person):
    main = repository(person.home / "main")
    git(main, "worktree", "add", "-q", str(person.home / "tree"))
    policy = person.policy(person.home / "tree")
    own = main / ".git" / "worktrees" / "tree"
    writable = [own / "index.lock", main / ".git" / "objects" / "x", main / ".git" / "refs" / "heads" / "x"]
    assert [path for path in writable if not policy.may_write(str(path))] == []
    kept = [own / "commondir", own / "gitdir", main / ".git" / "config", main / ".git" / "hooks" / "x"]
    kept += [main / ".git" / "HEAD", main / "README", person.home / "tree" / ".git"]
    assert [path for path in kept if policy.may_write(str(path))] == []


def test_a_submodule_can_be_committed_to_and_its_hooks_are_protected(person):
    library = repository(person.home / "library")
    main = repository(person.home / "main")
    git(main, "submodule", "add", "-q", str(library), "sub")
    policy = person.policy(main / "sub")
    own = main / ".git" / "modules" / "sub"
    assert policy.may_write(str(own / "index.lock"))
    kept = [
        own / "config",
        own / "hooks" / "x",
        main / ".git" / "config",
        main / ".git" / "index",
        main / "sub" / ".git",
    ]
    assert [path for path in kept if policy.may_write(str(path))] == []


def test_from_above_the_git_directories_of_submodules_and_other_worktrees_are_protected(person):
    library = repository(person.home / "library")
    repository(person.work)
    git(person.work, "submodule", "add", "-q", str(library), "sub")
    git(person.work, "worktree", "add", "-q", str(person.home / "tree"))
    policy = person.policy()
    assert not policy.may_write(str(person.work / ".git" / "modules" / "sub" / "config"))
    assert not policy.may_write(str(person.work / ".git" / "worktrees" / "tree" / "commondir"))


@pytest.mark.parametrize("target", ["home", "home/other", "home/other/.git", "home/other/.git/worktrees/x"])
def test_a_git_file_of_a_command_opens_no_other_place(person, target):
    other = repository(person.home / "other") / ".git" / "worktrees" / "x"
    other.mkdir(parents=True)
    for name, content in (("HEAD", "ref: refs/heads/main"), ("commondir", "../.."), ("gitdir", "/elsewhere/.git")):
        (other / name).write_text(content)
    (person.work / ".git").write_text(f"gitdir: {person.root / target}\n")
    policy = person.policy()
    assert policy.carved == ()
    assert not policy.may_write(str(person.home / "other" / ".git" / "x"))
    assert not policy.may_write(str(other / "x"))


def test_a_git_link_of_a_command_opens_no_other_place(person):
    other = repository(person.home / "other")
    (person.work / ".git").symlink_to(other / ".git")
    assert person.policy().carved == ()


@pytest.mark.parametrize("oddity", ["commondir", "worktreeconfig", "config is a link", "no config"])
def test_an_odd_git_directory_cannot_be_changed_at_all(person, oddity):
    config = repository(person.work) / ".git" / "config"
    match oddity:
        case "commondir":
            (config.parent / "commondir").write_text(".")
        case "worktreeconfig":
            config.write_text("[extensions]\n\tworktreeConfig = true\n")
        case "config is a link":
            config.rename(person.work / "moved")
            config.symlink_to(person.work / "moved")
        case "no config":
            config.unlink()
    assert not person.policy().may_write(str(config.parent / "index.lock"))
