"""What helps with writing a prompt: files, commands and models that could be meant, and what git has checked out."""

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from zotd.testing.script import CallPart, Refusal, calls, text


@pytest.fixture
def git(house):
    """`git("add", ".")`: git in the session's directory, or in the one below it that `at` names."""

    def git(*arguments, at="."):
        options = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "protocol.file.allow=always")
        env = {**house.place.env, "GIT_CONFIG_NOSYSTEM": "1"}
        command = ["git", *options, *arguments]
        return subprocess.run(command, cwd=house.cwd / at, env=env, check=True, capture_output=True, text=True).stdout

    return git


@pytest.fixture
async def talk(house, model):
    return await house.create("openai", await model(text("done")))


def write(folder, *paths):
    for path in paths:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text("")


async def files(talk, typed, **fields):
    return (await talk.ask("complete", kind="file", text=typed, **fields))["items"]


# --- files ----------------------------------------------------------------------------------------------------


async def test_the_file_that_is_meant_comes_first(house, git, talk):
    write(house.cwd, "app/settings.py", "app/offset_tables.py", "app/user_settings.py", "settings/a.py", "s/e/t.py")
    git("init")
    assert await files(talk, "set") == [
        "settings/",
        "app/settings.py",
        "app/user_settings.py",
        "settings/a.py",
        "app/offset_tables.py",
        "s/e/t.py",
    ]
    assert (await files(talk, "settings.py"))[0] == "app/settings.py"
    assert (await files(talk, "SETTINGS"))[0] == "settings/"
    assert (await files(talk, "apoff"))[0] == "app/offset_tables.py"
    assert (await files(talk, "app/s"))[0] == "app/settings.py"
    assert await files(talk, "./app/of") == ["app/offset_tables.py"]
    assert await files(talk, "nothing like it") == []


async def test_ignored_files_are_left_out_and_new_ones_and_submodules_are_not(house, git, talk, tmp_path):
    write(tmp_path / "library", "inner.py")
    git("init", at=tmp_path / "library")
    git("add", ".", at=tmp_path / "library")
    git("commit", "-m", "first", at=tmp_path / "library")
    write(house.cwd, "kept.py", "removed.py", "made/by_a_compiler.py", ".github/flow.yml")
    (house.cwd / ".gitignore").write_text("made/\n")
    git("init")
    git("submodule", "add", str(tmp_path / "library"), "library")
    git("add", ".")
    git("commit", "-m", "first")
    (house.cwd / "removed.py").unlink()
    write(house.cwd, "new.py")
    assert sorted(await files(talk, "")) == [
        ".github/",
        ".github/flow.yml",
        ".gitignore",
        ".gitmodules",
        "kept.py",
        "library/",
        "library/inner.py",
        "new.py",
    ]


async def test_without_git_a_walk_finds_the_users_files(house, talk):
    write(house.cwd, "a.py", "src/b.py", "src/build", ".env", ".venv/c.py", "node_modules/d/e.js", "out/f.o")
    (house.cwd / ".gitignore").write_text("out/\n")
    assert sorted(await files(talk, "")) == ["a.py", "src/", "src/b.py", "src/build"]


async def test_a_broken_repository_is_walked(house, talk):
    write(house.cwd, "a.py", ".git/HEAD")
    assert await files(talk, "a") == ["a.py"]


async def test_a_repository_cannot_have_a_program_started(house, git, talk, tmp_path):
    write(house.cwd, "a.py")
    write(tmp_path / "library", "inner.py")
    git("init", at=tmp_path / "library")
    git("add", ".", at=tmp_path / "library")
    git("commit", "-m", "first", at=tmp_path / "library")
    git("init")
    git("submodule", "add", str(tmp_path / "library"), "library")
    git("add", ".")
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/was_started\n")
    program.chmod(0o755)
    for at in (".", "library"):
        git("config", "core.fsmonitor", str(program), at=at)
        git("config", "core.pager", str(program), at=at)
        git("config", "pager.ls-files", "true", at=at)
    git("ls-files", "--others")
    assert (tmp_path / "was_started").exists(), "the configuration does start it for others"
    (tmp_path / "was_started").unlink()
    assert await files(talk, "inner") == ["library/inner.py"]
    assert not (tmp_path / "was_started").exists()


async def test_a_directory_cannot_bring_its_own_git(house, talk, tmp_path):
    write(house.cwd, "a.py", ".git/HEAD")
    (house.cwd / "git").write_text(f"#!/bin/sh\ntouch {tmp_path}/was_started\n")
    (house.cwd / "git").chmod(0o755)
    await talk.ask("session.configure", env={"PATH": f".:{house.place.env['PATH']}"})
    assert await files(talk, "a.p") == ["a.py"]
    assert not (tmp_path / "was_started").exists()


@pytest.mark.parametrize("has_git", [True, False])
async def test_unusable_names_are_left_out(house, git, talk, has_git):
    write(house.cwd, "good näme.py")
    if has_git:
        git("init")
    for name in (b"new\nline", b"es\x1b]0;cape", b"not\xffutf8", "turned\u202eround".encode(), b'quote"s.py'):
        (house.cwd / os.fsdecode(name)).write_text("")
    assert sorted(await files(talk, "")) == ["good näme.py", 'quote"s.py']
    assert await files(talk, f"{house.cwd}/") == [f"{house.cwd}/good näme.py", f'{house.cwd}/quote"s.py']


async def test_an_index_cannot_lead_outside(house, git, talk, tmp_path):
    write(tmp_path, "outside.py")
    git("init")
    digest = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    write(house.cwd, "inside.py")
    git("add", "inside.py")
    index = house.cwd / ".git" / "index"
    git("update-index", "--add", "--cacheinfo", f"100644,{digest},aa/outside.py")
    forged = index.read_bytes()[:-20].replace(b"aa/outside.py", b"../outside.py")
    index.write_bytes(forged + hashlib.sha1(forged).digest())  # git's own check sum
    assert "../outside.py" in git("ls-files").split()
    assert await files(talk, "side") == ["inside.py"]


async def test_a_path_that_begins_outside_is_completed_from_the_file_system(house, talk, tmp_path):
    write(tmp_path, "beside/notes.txt", "beside/more/a.txt", "beside/.hidden", "user/at_home.txt")
    assert await files(talk, f"{tmp_path}/beside/") == [f"{tmp_path}/beside/more/", f"{tmp_path}/beside/notes.txt"]
    assert await files(talk, f"{tmp_path}/beside/n") == [f"{tmp_path}/beside/notes.txt"]
    assert await files(talk, f"{tmp_path}/beside/.h") == [f"{tmp_path}/beside/.hidden"]
    assert await files(talk, "../bes") == ["../beside/"]
    assert await files(talk, "~/at") == ["~/at_home.txt"]
    assert await files(talk, "~") == ["~/at_home.txt"]
    assert "/tmp/" in await files(talk, "/tm")
    assert await files(talk, f"{tmp_path}/nowhere/") == []
    assert await files(talk, "/\0/") == []


async def test_a_client_that_only_reads_sees_nothing_outside_of_the_workspace(house, talk, tmp_path):
    write(house.cwd, "inside.py")
    reader = await house.follow(talk.id, await house.connect(role="read"))
    assert await files(reader, "ins") == ["inside.py"]
    assert await files(reader, f"{tmp_path}/") == await files(reader, "../") == await files(reader, "~/") == []


async def test_an_answer_is_short_and_long_texts_find_nothing(house, talk):
    write(house.cwd, *(f"file_{number}.py" for number in range(120)))
    assert len(await files(talk, "file")) == 50
    assert await files(talk, "f" * 5_000) == []


# --- commands and models --------------------------------------------------------------------------------------


async def test_commands_are_those_of_the_daemon_of_extensions_and_skills(house, shop, model):
    shop.write("weather", "@ext.command('forecast', 'What it will be like')\ndef forecast(args): return 'rain'")
    skill = house.place.home / "skills" / "release"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: release\ndescription: How a release is made.\n---\nTag it.")
    talk = await shop.open(await model(text("done")))
    await talk.run()
    found = (await talk.ask("complete", kind="command", text="/"))["found"]
    known = {one["text"]: (one.get("detail"), one.get("source")) for one in found}
    assert known["forecast"] == ("What it will be like", "weather")
    assert known["skill:release"] == ("How a release is made.", "skill")
    assert known["compact"][1] == "built in"
    for typed, best in [("/co", "compact"), ("con", "continue"), ("ext", "reload-ext"), ("fore", "forecast")]:
        assert (await talk.ask("complete", kind="command", text=typed))["items"][0] == best
    assert (await talk.ask("complete", kind="command", text="rel"))["items"] == ["reload-ext", "skill:release"]
    assert await talk.refused("complete", kind="planet", text="") == "bad_request"


async def test_a_skill_with_an_unusable_name_is_left_out(house, talk):
    for name in (b"good", b"not\xffutf8", b"es\x1bcape"):
        skill = house.place.home / "skills" / os.fsdecode(name)
        skill.mkdir(parents=True)
        (skill / "SKILL.md").write_text("---\ndescription: A skill.\x1b[2J\n---\nDo it.")
    found = (await talk.ask("complete", kind="command", text="skill:"))["found"]
    own = [(one["text"], one["detail"]) for one in found if one["detail"].startswith("A skill")]
    assert own == [("skill:good", "A skill. [2J")]


async def test_a_skill_is_used_by_its_command(house, model, look):
    skill = house.place.home / "skills" / "release"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: release\ndescription: How a release is made.\n---\nTag it twice.")
    server = await model(text("tagged"))
    talk = await house.create("openai", server)
    await talk.ask("run_command", name="/skill:release", args="1.2")
    await talk.until("done")
    assert (await talk.texts())[0] == ("user", ["/skill:release 1.2"])
    assert "Tag it twice." in str(server.requests[0].messages)


async def test_models_that_have_a_key_come_first(house):
    options = {"provider": "ollama", "model": "m", "secrets": {}, "env": {"ANTHROPIC_API_KEY": "sk-1"}}
    talk = await house.create("openai", None, **options)
    found = (await talk.ask("complete", kind="model", text="claude"))["found"]
    assert found[0]["source"] == "anthropic"
    lacking = [one.get("detail") == "no key" for one in found]
    assert lacking == sorted(lacking)
    assert lacking[-1]
    assert (await talk.ask("complete", kind="model", text="zzz"))["items"] == []


# --- where one is ---------------------------------------------------------------------------------------------


async def branch(talk):
    found = await talk.ask("workspace.info")
    return found.get("branch"), found.get("detached", False)


async def test_the_branch_is_told_of_repositories_worktrees_and_single_commits(house, git, talk, model):
    assert await talk.ask("workspace.info") == {"cwd": str(house.cwd)}
    write(house.cwd, "a.py")
    git("init", "-b", "main/topic")
    assert await branch(talk) == ("main/topic", False)
    git("add", ".")
    git("commit", "-m", "first")
    git("worktree", "add", "-b", "other", "beside")
    for below in ("beside", "beside/deep"):
        (house.cwd / below).mkdir(exist_ok=True)
        there = await house.create("openai", await model(), cwd=str(house.cwd / below))
        assert await branch(there) == ("other", False)
    git("checkout", "--detach")
    name, is_detached = await branch(talk)
    assert is_detached
    assert len(name) == 7


@pytest.mark.parametrize("head", [b"", b"\xff", b"ref: refs/heads/a\x1b]0;b\n", b"root:x:0:0\n"])
async def test_an_invalid_head_is_no_branch(house, talk, head):
    (house.cwd / ".git").mkdir()
    (house.cwd / ".git" / "HEAD").write_bytes(head)
    assert await branch(talk) == (None, False)


async def test_a_named_pipe_in_place_of_a_head_blocks_nothing(house, talk):
    (house.cwd / ".git").mkdir()
    os.mkfifo(house.cwd / ".git" / "HEAD")
    assert await branch(talk) == (None, False)


# --- what a list tells ----------------------------------------------------------------------------------------


async def test_a_list_shows_working_waiting_and_failed_sessions(house, model):
    asks = await house.create(
        "openai", await model(calls(CallPart("bash", {"command": "true"})), text("ok")), mode="ask"
    )
    works = await model(text("again"))
    fails = await house.create("openai", await model(Refusal(400)))
    rests = await house.create("openai", await model(text("hi")))
    watcher = await house.connect()
    await watcher.ask("subscribe", topics=["sessions"])
    await asks.ask("prompt", message="a question for Ann")
    told: dict[str, object] = {}
    while told.get("state") != "waiting":
        told = (await watcher.until("session_updated"))[-1]
    assert told["session"] == asks.id
    await fails.run("this fails")
    await rests.run("hello\nthere")
    listed = {one["id"]: one for one in (await watcher.ask("session.list"))["sessions"]}
    assert [listed[talk.id]["state"] for talk in (asks, fails, rests)] == ["waiting", "idle", "idle"]
    assert [listed[talk.id].get("failed", False) for talk in (asks, fails, rests)] == [False, True, False]
    assert [listed[talk.id]["name"] for talk in (asks, fails, rests)] == ["a question for Ann", "this fails", "hello"]
    assert listed[rests.id]["message_count"] == 2
    while (told.get("session"), told.get("failed")) != (fails.id, True):
        told = (await watcher.until("session_updated"))[-1]
    await fails.ask("session.configure", base_url=works.openai_url)
    await fails.run("this works")
    assert "failed" not in await watcher.ask("session.get", session=fails.id)
    await asks.ask("abort")
    await asks.until("done")


def descriptors():
    """How many this process has open."""
    return len(list(Path("/dev/fd").iterdir()))


def headed(make):
    """Makes a directory `.git`, in which `make` makes the `HEAD`."""

    def build(git):
        git.mkdir()
        make(git / "HEAD")

    return build


@pytest.mark.parametrize(
    "make",
    [
        headed(Path.mkdir),
        headed(os.mkfifo),
        headed(lambda head: head.write_text("ref: refs/heads/a\x9b2Jb\n")),
        lambda git: git.symlink_to("x" * 300),
        os.mkfifo,
    ],
    ids=["a directory", "a pipe", "controls", "no name", "no directory"],
)
async def test_a_repository_that_git_has_not_made_has_no_branch_and_leaves_nothing_open(house, talk, make):
    make(house.cwd / ".git")
    await talk.ask("workspace.info")
    before = descriptors()
    assert await talk.ask("workspace.info") == {"cwd": str(house.cwd)}
    assert descriptors() == before


async def test_a_repository_that_says_it_is_about_another_directory_shows_its_own(house, git, talk, tmp_path):
    write(tmp_path, "elsewhere/private.txt")
    write(house.cwd, "mine.txt")
    git("init")
    git("config", "core.worktree", str(tmp_path / "elsewhere"))
    assert await files(talk, "") == ["mine.txt"]


async def test_an_environment_that_no_program_can_have_hides_no_files(house, git, model):
    write(house.cwd, "a.py")
    git("init")
    talk = await house.create("openai", await model(), env={"PATH": os.environ["PATH"], "HOME": "/\0"})
    assert await files(talk, "a") == ["a.py"]
