"""What people are shown of a call, and the spellings of the path that it leads to."""

import os

import pytest

from zotd.permissions import preview
from zotd.permissions.preview import Paths, paths_of, preview_of


@pytest.fixture
def cwd(tmp_path):
    path = tmp_path / "home" / "shop"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def shown(cwd):
    async def shown(tool, extension=None, **args):
        return await preview_of(tool, extension, args, str(cwd), home=str(cwd.parent))

    return shown


@pytest.fixture
def spelled(cwd):
    async def spelled(tool, extension=None, **args):
        found = await paths_of(tool, extension, args, str(cwd), home=str(cwd.parent))
        assert found.is_resolved
        return set(found.spellings)

    return spelled


# --- previews ---------------------------------------------------------------------------------------------------------


async def test_a_write_is_shown_as_a_diff_with_the_existing_file(shown, cwd):
    lines = [f"line {number}" for number in range(1, 21)]
    (cwd / "a.txt").write_text("\n".join(lines) + "\n")
    lines[1], lines[17] = "second", "eighteenth"
    assert (await shown("write", path="a.txt", content="\n".join(lines) + "\n")).split("\n") == [
        *(
            "--- a.txt",
            "+++ a.txt",
            "@@ -1,5 +1,5 @@",
            " line 1",
            "-line 2",
            "+second",
            " line 3",
            " line 4",
            " line 5",
        ),
        *("@@ -15,6 +15,6 @@", " line 15", " line 16", " line 17", "-line 18", "+eighteenth", " line 19", " line 20"),
    ]
    assert await shown("write", path="a.txt", content=(cwd / "a.txt").read_text()) == "a.txt stays as it is"


async def test_a_long_change_is_shown_as_replaced_and_is_as_right(shown, cwd):
    old = [f"old {number}" for number in range(preview.COMPARED_LINES + 1)]
    (cwd / "a.txt").write_text("\n".join(["same", *old, "end"]))
    found = (await shown("write", path="a.txt", content="same\nnew\nend")).split("\n")
    assert found[:5] == ["--- a.txt", "+++ a.txt", f"@@ -1,{len(old) + 2} +1,3 @@", " same", "-old 0"]


async def test_a_new_file_is_said_to_be_one(shown, cwd):
    assert await shown("write", path="~/b/a.txt", content="one\ntwo") == "new file ~/b/a.txt (7 bytes)\n+one\n+two"
    assert not (cwd.parent / "b").exists()


async def test_an_edit_is_the_diff_that_it_will_answer_with(shown, cwd):
    (cwd / "a.txt").write_text("one\ntwo\n")
    edits = [{"oldText": "two", "newText": "three"}]
    assert await shown("edit", path="a.txt", edits=edits) == "--- a.txt\n+++ a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three"
    assert (cwd / "a.txt").read_text() == "one\ntwo\n"


@pytest.mark.parametrize(
    ("tool", "args", "words"),
    [
        ("edit", {"path": "none", "edits": [{"oldText": "a", "newText": "b"}]}, "none: no such file"),
        ("edit", {"path": "a.txt", "edits": [{"oldText": "zzz", "newText": "b"}]}, "oldText not found"),
        ("edit", {"path": "a.txt", "edits": 3}, "(no diff: "),
        ("edit", {"path": ".", "edits": [{"oldText": "a", "newText": "b"}]}, "is a directory"),
        ("write", {"path": "pipe", "content": "x"}, "not a regular file"),
        ("write", {"path": "a.txt", "content": 3}, "no content to write"),
        ("write", {"path": "a.txt", "content": "\ud800"}, "(no diff: "),
        ("write", {"path": "x" * 300, "content": "x"}, "file name too long"),
        ("write", {"path": "loop", "content": "x"}, "loop: "),
    ],
)
async def test_what_cannot_be_compared_is_a_sentence_and_the_arguments(shown, cwd, tool, args, words):
    (cwd / "a.txt").write_text("one\n")
    os.mkfifo(cwd / "pipe")
    (cwd / "loop").symlink_to("loop")
    found = await shown(tool, **args)
    assert found.startswith("(no diff: ")
    assert words in found
    assert f'"path": "{args["path"]}"' in found


@pytest.mark.parametrize("args", [{}, {"path": 3}, {"path": ""}, {"path": "a\0b"}])
async def test_a_call_without_a_usable_path_is_its_arguments(shown, args):
    assert (await shown("write", **args)).startswith("{")


async def test_binary_and_very_long_files_are_not_compared(shown, cwd):
    (cwd / "a.bin").write_bytes(b"\0\1")
    assert (await shown("write", path="a.bin", content="x")).startswith("a.bin, which is no text, is replaced")
    (cwd / "long").write_bytes(b"x" * (preview.COMPARED_BYTES + 1))
    assert (await shown("write", path="long", content="x")).startswith("long is replaced; too long")


async def test_a_command_is_shown_as_it_is_and_its_time_limit_too(shown):
    assert await shown("bash", command="git push\n  --force") == "git push\n  --force"
    assert await shown("bash", command="ls", timeout=5) == 'ls\n({\n  "timeout": 5\n})'


async def test_the_rest_is_json_and_so_is_a_tool_of_an_extension_with_one_of_our_names(shown):
    assert await shown("weather", "weather", city="Köln") == '{\n  "city": "Köln"\n}'
    assert (await shown("bash", "theirs", command="ls")).startswith("{")


async def test_nothing_in_a_preview_steers_a_terminal_or_hides(shown):
    hidden = "ls \x1b[2K\r\u202egnp.exe\u200b \x9b\u2028 \U000e0041 é 👍"
    assert await shown("bash", command=hidden) == (
        "ls \\x1b[2K\\x0d\\u202egnp.exe\\u200b \\x9b\\u2028 \\U000e0041 é 👍"
    )


async def test_a_preview_that_is_too_long_says_how_much_is_missing(shown):
    found = await shown("bash", command="x" * (preview.PREVIEW_CHARS + 7))
    assert found.endswith("x\n[7 more characters are not shown]")


# --- paths ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["a", "./a", "b/../a", "{cwd}/a", "~/shop/a", "../shop/a", "//{cwd}/a", "{cwd}//./a"])
async def test_a_path_has_the_same_spellings_however_it_is_written(spelled, cwd, way):
    assert await spelled("write", path=way.format(cwd=cwd)) == {str(cwd / "a"), "a", "~/shop/a"}


async def test_a_link_is_spelled_with_where_it_leads(spelled, cwd):
    (cwd.parent / "secrets").mkdir()
    (cwd / "link").symlink_to("../secrets")
    secret = cwd.parent / "secrets" / "x"
    found = {str(cwd / "link/x"), "link/x", "~/shop/link/x", str(secret), "../secrets/x", "~/secrets/x"}
    assert await spelled("write", path="link/x") == found
    around = await spelled("write", path="link/../secrets/x")
    assert {"../secrets/x", "secrets/x"} <= around


async def test_a_search_leads_also_to_where_its_pattern_goes(spelled, cwd):
    assert await spelled("glob", pattern="../other/*.py") >= {".", str(cwd), "../other/*.py"}
    assert await spelled("grep", pattern="x", glob="secrets/*") >= {".", "secrets/*"}
    assert await spelled("glob", path="src", pattern="/etc/*") >= {"src", "/etc/*"}


@pytest.mark.parametrize("args", [{}, {"path": None}, {"path": ["a"]}, {"path": ""}, {"path": "a\0"}])
async def test_a_value_that_is_no_path_has_no_spelling(cwd, args):
    assert await paths_of("write", None, args, str(cwd)) == Paths()


async def test_a_command_has_no_path_whatever_its_other_arguments(cwd):
    assert await paths_of("bash", None, {"command": "ls", "path": "a"}, str(cwd)) == Paths()


async def test_where_the_environment_has_no_home_a_tilde_is_a_name(cwd):
    found = await paths_of("write", None, {"path": "~/a"}, str(cwd))
    assert set(found.spellings) == {str(cwd / "~" / "a"), "~/a"}


async def test_a_name_that_no_file_can_have_is_not_resolved(cwd):
    assert not (await paths_of("write", None, {"path": "\ud800"}, str(cwd))).is_resolved
