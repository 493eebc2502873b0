import os
from pathlib import Path

import pytest

import zotd
from zotd.tools.skill import find_skills


@pytest.fixture
def skill(tmp_path):
    """Writes a skill; gives the directory of skills."""

    def write(folder: str, name: str, text: str) -> str:
        path = tmp_path / folder / name / "SKILL.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return str(tmp_path / folder)

    return write


def described(skill, value: str) -> str:
    """A description as the parser reads it."""
    folder = skill("s", "one", f"---\ndescription: {value}\nother: x\n---\nbody\n")
    [found] = find_skills([folder])
    return found.description


def test_skills_are_found_in_order_and_the_first_of_a_name_wins(skill, tmp_path):
    first = skill("first", "a", "---\nname: deploy\ndescription: mine\n---\n")
    skill("first", "z", "---\ndescription: last\n---\n")
    second = skill("second", "deploy", "---\nname: deploy\ndescription: yours\n---\n")
    found = find_skills([first, str(tmp_path / "missing"), second])
    assert [(one.name, one.description, one.path) for one in found] == [
        ("deploy", "mine", f"{first}/a/SKILL.md"),
        ("z", "last", f"{first}/z/SKILL.md"),
    ]


def test_a_directory_may_be_a_skill_itself(skill):
    folder = skill("s", "one", "---\ndescription: d\n---\n")
    assert [one.name for one in find_skills([f"{folder}/one"])] == ["one"]


@pytest.mark.parametrize(
    ("value", "description"),
    [
        ("plain words", "plain words"),
        ("plain: with a colon # and a comment", "plain: with a colon"),
        ("not#a comment", "not#a comment"),
        ('"double \\"quoted\\" # \\u00e9"  # comment', 'double "quoted" # é'),
        ('"never closed', "never closed"),
        ("'single ''quoted'' # one'", "single 'quoted' # one"),
        ("> \n", ""),
        (">\n  folded\n  lines\n\n  of two paragraphs", "folded lines of two paragraphs"),
        (">-\n    folded\n    deeper", "folded deeper"),
        ("|\n  kept\n  lines", "kept lines"),
        ("plain\n  that goes on\n  below", "plain that goes on below"),
        ("\n  all below", "all below"),
    ],
)
def test_values_are_read_as_yaml_reads_them(skill, value, description):
    if description:
        assert described(skill, value) == description
    else:
        assert find_skills([skill("s", "one", f"---\ndescription: {value}---\n")]) == []


def test_fields_that_are_lists_or_unknown_are_passed_over(skill):
    folder = skill(
        "s", "one", "---\nallowed-tools:\n  - bash\n- read\nmeta:\n  name: x\n# a comment\ndescription: d\n---\n"
    )
    assert [(one.name, one.description) for one in find_skills([folder])] == [("one", "d")]


def test_line_ends_and_byte_order_mark_of_windows_are_read(skill):
    folder = skill("s", "one", "\ufeff---\r\nname: two\r\ndescription: d\r\n---\r\nbody\r\n")
    assert [(one.name, one.description) for one in find_skills([folder])] == [("two", "d")]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no fields", "does not begin with fields between two --- lines"),
        ("---\ndescription: never closed\n", "does not begin with fields between two --- lines"),
        ("---\n---\n", "has no description"),
        ("---\nname: one\n---\n", "has no description"),
        ("x" * 300_000, "has more than 262,144 bytes"),
    ],
)
def test_a_bad_skill_is_reported_and_the_others_are_found(skill, text, problem):
    skill("s", "bad", text)
    folder = skill("s", "good", "---\ndescription: d\n---\n")
    problems: list[str] = []
    assert [one.name for one in find_skills([folder], problems.append)] == ["good"]
    assert len(problems) == 1
    assert f"{folder}/bad/SKILL.md {problem}" in problems[0]


def test_an_irregular_file_is_reported(tmp_path):
    for name in ("fifo", "loop"):
        (tmp_path / name).mkdir()
    os.mkfifo(tmp_path / "fifo" / "SKILL.md")
    (tmp_path / "loop" / "SKILL.md").symlink_to("SKILL.md")
    problems: list[str] = []
    assert find_skills([str(tmp_path)], problems.append) == []
    assert len(problems) == 2


def test_a_problem_without_readers_is_logged(skill, caplog):
    find_skills([skill("s", "bad", "nothing")])
    assert "does not begin with fields" in caplog.text


async def test_a_skill_gives_its_instructions_and_where_its_files_are(call, skill):
    folder = skill("s", "one", "---\ndescription: d\n---\n\nDo this.\n\n---\nThen that.\n")
    text, is_error = await call("skill", {"name": "one"}, skill_dirs=[folder])
    assert not is_error
    assert text == f"# Skill: one\n\nFiles that it names are in {folder}/one\n\nDo this.\n\n---\nThen that.\n"


async def test_a_skill_only_for_people_is_hidden_with_what_it_hides(call, skill):
    first = skill("first", "one", "---\ndescription: d\ndisable-model-invocation: true\n---\nsecret\n")
    second = skill("second", "one", "---\ndescription: d\n---\n")
    assert find_skills([first, second]) == []
    text, is_error = await call("skill", {"name": "one"}, skill_dirs=[first, second])
    assert (text, is_error) == ("no skill is called one; there is none", True)


async def test_an_unknown_skill_is_answered_with_the_known_ones_and_the_bad_ones(call, skill):
    skill("s", "one", "---\ndescription: d\n---\n")
    folder = skill("s", "bad", "nothing")
    text, is_error = await call("skill", {"name": "bad"}, skill_dirs=[folder])
    assert is_error
    assert text.startswith(f"no skill is called bad; there are one; {folder}/bad/SKILL.md does not begin")


async def test_long_instructions_are_cut_with_the_way_on(call, skill):
    folder = skill("s", "one", "---\ndescription: d\n---\n" + "é" * 60_000)
    text, _ = await call("skill", {"name": "one"}, skill_dirs=[folder])
    assert len(text.encode()) < 52 * 1024
    assert text.endswith(f"[there is more; read {folder}/one/SKILL.md]")


def test_the_built_in_skills_are_good(caplog):
    folder = Path(zotd.__file__).with_name("skills")
    assert [one.name for one in find_skills([str(folder)])] == ["write-zot-extension", "zot"]
    assert caplog.text == ""
