"""The system prompt: its parts in order, and the same text as long as the parts are the same."""

from zotd.core.prompts import IDENTITY, ContextFile, PromptParts, SkillLine, compose


def parts(**fields):
    return PromptParts(**({"cwd": "/src/door", "date": "2026-11-21"} | fields))


FULL = {
    "appended": ["Be brief.", "Be kind."],
    "context_files": [ContextFile("/h/AGENTS.md", "general\n"), ContextFile("/src/AGENTS.md", "\n special")],
    "skills": [SkillLine("plane", "how to plane wood"), SkillLine("glue", "how to glue")],
}


def test_the_least_prompt_says_who_it_is_and_where():
    assert compose(parts()) == f"{IDENTITY}\n\nWorking directory: /src/door\nDate: 2026-11-21"


def test_all_parts_stand_in_their_order():
    text = compose(parts(**FULL))
    assert text.removeprefix(IDENTITY) == (
        "\n\nBe brief.\n\nBe kind."
        "\n\n# Instructions of the user and of this project\nLater ones are more specific and win."
        '\n\n<instructions file="/h/AGENTS.md">\ngeneral\n</instructions>'
        '\n\n<instructions file="/src/AGENTS.md">\nspecial\n</instructions>'
        "\n\n# Skills\nCall the tool `skill` with a name before you do such work."
        "\n- plane: how to plane wood\n- glue: how to glue"
        "\n\nWorking directory: /src/door\nDate: 2026-11-21"
    )


def test_the_same_parts_give_the_same_text_so_that_prompt_caches_hit():
    assert compose(parts(**FULL)) == compose(parts(**FULL))


def test_a_prompt_of_the_users_own_replaces_the_identity_and_nothing_else():
    own, ours = compose(parts(base="You are a cook.", **FULL)), compose(parts(**FULL))
    assert own.removeprefix("You are a cook.") == ours.removeprefix(IDENTITY)


def test_an_empty_prompt_of_the_users_own_leaves_no_gap():
    assert compose(parts(base="")) == "Working directory: /src/door\nDate: 2026-11-21"
    assert compose(parts(appended=["", "x"])) == f"{IDENTITY}\n\nx\n\nWorking directory: /src/door\nDate: 2026-11-21"


def test_sections_without_content_have_no_heading():
    assert "#" not in compose(parts(base="x"))
