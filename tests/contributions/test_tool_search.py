"""The tool that finds tools, and when there is one."""

from types import SimpleNamespace

import pytest

from zotd.contributions.tool_search import finder, unlisted
from zotd.contributions.toolbox import choose
from zotd.core.ports import ToolContext, ToolSpec
from zotd.core.records import Settings
from zotd.tools import TOOLS
from zotd.wire.content import Text

OURS = [tool.spec.name for tool in TOOLS]
SETTINGS = Settings(provider="p", model="m")


def tool(name, about="", extension="mcp-gh", exposure="direct"):
    """What is looked at in an `exthost.tools.ExtensionTool`."""
    return SimpleNamespace(spec=ToolSpec(name, about, {}), extension=extension, exposure=exposure)


SOME = [
    tool("gh__create_issue", "Opens an issue in a repository."),
    tool("gh__list_issues", "Lists the issues of a repository."),
    tool("gh__merge", "Merges a pull request."),
    tool("jira__comment", "Comments on an issue.", extension="mcp-jira"),
]


async def ask(query, tools=SOME):
    """What the model reads, and the tools that are added."""
    added: list[str] = []
    context = ToolContext(session="s_1", call_id="1", cwd="/", env={}, out_dir="/", progress=added.append)
    outcome = await finder(tools, added.extend).run({"query": query}, context)
    (block,) = outcome.content
    assert isinstance(block, Text)
    return block.text, added


def test_tools_are_listed_up_to_the_limit():
    assert unlisted(SOME, 4) == []
    assert unlisted([*SOME, tool("weather", extension="weather")], 4) == []
    assert unlisted([*SOME, tool("weather", extension="weather")], 3) == SOME
    assert unlisted([*SOME, tool("gh__later", exposure="deferred")], 4) == []


def test_a_tool_of_an_extension_with_that_name_keeps_it():
    assert unlisted([*SOME, tool("find_tools", extension="other")], 1) == []


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("gh__merge", "gh__merge"),
        ("merge pull requests", "gh__merge"),
        ("Create an ISSUE", "gh__create_issue"),
        ("comment", "jira__comment"),
    ],
)
async def test_the_best_match_comes_first_and_is_added(query, first):
    words, added = await ask(query)
    assert added[0] == first
    assert words.splitlines()[1].startswith(f"{first}: ")


async def test_a_search_without_a_match_names_the_servers():
    assert await ask("weather") == ("no tool has these words; there are tools of gh (3), jira (1)", [])


async def test_one_search_adds_a_few_and_names_further_ones():
    many = [tool(f"gh__issue_{number}") for number in range(100)]
    words, added = await ask("issue", many)
    assert added == [one.spec.name for one in many[:8]]
    further = words.splitlines()[-1]
    assert (further.count("gh__issue_"), "gh__issue_8" in further) == (40, True)


def test_an_unlisted_tool_can_be_called_and_is_shown_once_it_was_found():
    names = {one.spec.name for one in SOME}
    search = finder(SOME, lambda _: None)
    before = choose(SETTINGS, SOME, unlisted=names, finders=[search])
    assert [spec.name for spec in before.specs] == [*OURS, "find_tools"]
    assert names < before.tools.keys()
    after = choose(SETTINGS, SOME, {"gh__merge"}, [*OURS, "find_tools"], unlisted=names, finders=[search])
    assert [spec.name for spec in after.specs] == [*OURS, "find_tools", "gh__merge"]


def test_the_model_is_told_where_it_searches():
    assert "gh (3), jira (1)" in finder(SOME, lambda _: None).spec.description
