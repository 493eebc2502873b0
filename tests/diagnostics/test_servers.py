"""What a model is told after an edit, by a scripted language server."""

import asyncio

import pytest

from tests.diagnostics.conftest import fake
from zotd.diagnostics import servers

ONE = "1 new error after this change:\na.txt:2:5: no such name (fake)"


@pytest.mark.parametrize("traits", [(), ("says-later",), ("pushes",), ("no-version",)])
async def test_an_error_that_an_edit_causes_is_told(world, traits):
    async with world(fake(*traits)) as here:
        assert await here.edit("a.txt", "one\ntwo # error: no such name\n") == ONE


@pytest.mark.parametrize("traits", [(), ("pushes",)])
async def test_errors_that_were_there_before_are_not_told(world, traits):
    async with world(fake(*traits)) as here:
        (here.work / "a.txt").write_text("one # error: old\n")
        assert await here.edit("a.txt", "new line\none # error: old\n") == ""
        told = await here.edit("a.txt", "new line\none # error: old\ntwo # error: new\n")
        assert told == "1 new error after this change:\na.txt:3:5: new (fake)"


async def test_of_equal_errors_the_one_in_the_changed_lines_is_new(world):
    async with world(fake()) as here:
        (here.work / "a.txt").write_text("a # error: same\nb\n")
        assert await here.edit("a.txt", "a # error: same\nb # error: same\n") == (
            "1 new error after this change:\na.txt:2:3: same (fake)"
        )
        assert "a.txt:1:3: same" in await here.edit("a.txt", "x # error: same\na # error: same\nb # error: same\n")


async def test_an_error_is_told_once_and_again_when_it_comes_back(world):
    async with world(fake()) as here:
        assert "no such name" in await here.edit("a.txt", "x # error: no such name\n")
        assert await here.edit("a.txt", "x # error: no such name\ny\n") == ""
        assert await here.edit("a.txt", "y\n") == ""
        assert "no such name" in await here.edit("a.txt", "x # error: no such name\ny\n")


async def test_warnings_are_not_told(world):
    async with world(fake()) as here:
        assert await here.edit("a.txt", "x # warning: unused\n") == ""


@pytest.mark.parametrize("traits", [("sees-others",), ("pushes",)])
async def test_errors_in_other_files_that_were_edited_are_told(world, traits):
    async with world(fake(*traits)) as here:
        await here.edit("b.txt", "fine\n")
        told = await here.edit("a.txt", "x # error in b.txt: it is used there\n")
        assert told == "1 new error after this change:\nb.txt:1:3: it is used there (fake)"


async def test_only_some_lines_are_told_and_the_rest_is_counted(world):
    async with world(fake()) as here:
        told = (await here.edit("a.txt", "".join(f"x # error: e{i}\n" for i in range(50)))).split("\n")
        assert told[0] == "50 new errors after this change:"
        assert told[-1] == "and 30 more"
        assert len(told) == 22


async def test_a_file_without_a_server_is_not_checked(world):
    async with world(fake()) as here:
        assert await here.edit("a.unknown", "x # error: no such name\n") == ""
        assert await here.servers.listing() == []


async def test_a_file_outside_of_the_working_directory_is_not_checked(world, tmp_path):
    async with world(fake()) as here:
        assert await here.edit("a.txt", "x # error: no such name\n", work=tmp_path) == ""


async def test_a_file_that_is_no_text_is_not_checked(world):
    async with world(fake()) as here:
        path = here.work / "a.txt"
        path.write_bytes(b"\xff\xfe")
        assert await here.servers.new_errors(here.session(), str(path), None, b"\xff\xfe") == ""


async def test_a_program_that_is_not_installed_is_no_server(world):
    missing = {"absent": next(iter(fake().values()))}
    missing["absent"] = type(missing["absent"])(command=("no-such-language-server",), languages={".txt": "plaintext"})
    async with world(missing) as here:
        assert await here.edit("a.txt", "x # error: no such name\n") == ""
        assert await here.servers.listing() == []


async def test_sessions_of_a_directory_share_a_server(world):
    async with world(fake()) as here:
        await here.edit("a.txt", "one\n", session="s_1")
        await here.edit("b.txt", "one\n", session="s_2")
        (one,) = await here.servers.listing()
        assert (one.state, one.files, one.sessions) == ("ready", 2, ["s_1", "s_2"])
        assert one.memory_bytes is not None
        assert one.memory_bytes > 1_000_000
        assert len(here.received("initialize")) == 1


async def test_a_server_ends_with_the_last_session_that_uses_it(world):
    async with world(fake()) as here:
        await here.edit("a.txt", "one\n", session="s_1")
        await here.edit("a.txt", "two\n", session="s_2")
        await here.servers.leave("s_1")
        assert (await here.state()).state == "ready"
        await here.servers.leave("s_2")
        assert await here.servers.listing() == []
        assert [one["method"] for one in here.received()[-2:]] == ["shutdown", "exit"]


async def test_the_root_is_the_nearest_directory_with_a_mark(world):
    servers = fake()
    section = servers["fake"]
    servers["fake"] = type(section)(command=section.command, languages=section.languages, roots=("mark",))
    async with world(servers) as here:
        (here.work / "inner" / "deep").mkdir(parents=True)
        (here.work / "inner" / "mark").touch()
        await here.edit("inner/deep/a.txt", "one\n")
        assert (await here.state()).root == str(here.work / "inner")


async def test_what_commands_have_changed_is_known_at_the_next_edit(world):
    async with world(fake("sees-others")) as here:
        await here.edit("a.txt", "one\n")
        await here.edit("b.txt", "one\n")
        (here.work / "a.txt").write_text("a longer text # error: by a command\n")
        (here.work / "new.txt").write_text("new")
        assert "a.txt:1:15: by a command" in await here.edit("b.txt", "two\n")
        (events,) = here.received("workspace/didChangeWatchedFiles")[-1:]
        kinds = {one["uri"].rpartition("/")[2]: one["type"] for one in events["changes"]}
        assert kinds == {"new.txt": 1}  # the others are open


async def test_a_file_that_was_removed_is_closed(world):
    async with world(fake("sees-others")) as here:
        await here.edit("a.txt", "one\n")
        (here.work / "a.txt").unlink()
        await here.edit("b.txt", "two\n")
        assert [one["textDocument"]["uri"].rpartition("/")[2] for one in here.received("textDocument/didClose")] == [
            "a.txt"
        ]


async def test_edits_at_the_same_time_get_their_own_errors(world):
    async with world(fake()) as here:
        async with asyncio.TaskGroup() as tasks:
            told = [
                tasks.create_task(here.edit(f"{name}.txt", f"x # error: of {name}\n", session=f"s_{name}"))
                for name in "abc"
            ]
        for name, one in zip("abc", told, strict=True):
            assert one.result() == f"1 new error after this change:\n{name}.txt:1:3: of {name} (fake)"


async def test_settings_reach_the_server_when_it_asks(world):
    servers = fake("asks")
    section = servers["fake"]
    servers["fake"] = type(section)(
        command=section.command, languages=section.languages, settings={"fake": {"depth": 7}}
    )
    async with world(servers) as here:
        await here.edit("a.txt", "one\n")
        await here.edit("a.txt", "two\n")
        answers = {one["id"]: one for one in here.received() if "method" not in one}
        assert answers[1]["result"] == [7]
        assert answers["two"]["error"]["code"] == -32601
        assert answers[3]["error"]["code"] == -32602


async def test_a_disk_that_does_not_answer_in_time_is_said(world, monkeypatch):
    monkeypatch.setattr(servers, "LOOK_S", 0.0)
    async with world(fake(), wait_s=0.0) as here:
        assert (await here.edit("a.txt", "one\n")).startswith(
            "[the language servers were not asked: the disk did not say"
        )
