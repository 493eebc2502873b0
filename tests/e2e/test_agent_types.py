"""Agent types: Markdown files that say what a subagent is, and what it may do at most."""

import pytest

from tests.e2e.family import OPENING, Cast, of, results_of, tasks, tools_of
from zotd.testing.script import CallPart, calls, text


class Desk:
    """Where files of agent types are, and a session that uses them."""

    def __init__(self, house, model):
        self.house = house
        self._model = model
        self.home = house.place.home / "agents"
        self.project = house.cwd / ".zot" / "agents"

    @staticmethod
    def write(folder, name, *fields, text="You look at things."):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.md").write_text("\n".join(["---", *fields, "---", text]))

    async def trust(self):
        admin = await self.house.connect(role="admin")
        (found,) = (await admin.ask("trust.list", path=str(self.house.cwd)))["workspaces"]
        await admin.ask("trust.grant", path=str(self.house.cwd), digest=found["digest"])

    async def session(self, mode="yolo", **parts):
        self.server = await self._model(Cast(**parts))
        options = {**OPENING, "base_url": self.server.openai_url, "mode": mode}
        self.talk = await self.house.create("ollama", None, **options)
        return self.talk

    async def listed(self):
        return await (await self.house.connect()).ask("agents.list", cwd=str(self.house.cwd))

    def results(self, name="go"):
        return results_of(of(self.server, name)[-1])


@pytest.fixture
def desk(house, model):
    return Desk(house, model)


def description(request):
    (tool,) = [tool["function"] for tool in request.body["tools"] if tool["function"]["name"] == "task"]
    return tool["description"]


async def test_a_type_is_offered_to_the_model_and_gives_the_subagent_its_instructions_and_tools(desk):
    desk.write(desk.home, "reviewer", "name: reviewer", "description: Reviews changes.", "tools: Read, Grep")
    talk = await desk.session(go=[tasks("a", agent="reviewer"), text("done")], a=[text("fine")])
    await talk.run("go")
    assert "- reviewer: Reviews changes." in description(of(desk.server, "go")[0])
    (request,) = of(desk.server, "a")
    assert "You look at things." in str(request.messages[0])
    assert tools_of(request) == ["grep", "read"]
    (_, child) = (await talk.client.ask("session.family", session=talk.id))["sessions"]
    assert child["parent"]["agent"] == "reviewer"


async def test_arguments_in_tools_limit_the_calls_and_no_type_gives_more_than_the_parent_has(desk):
    desk.write(desk.home, "git", "description: Looks at git.", "tools: Bash(echo one:*), Write", "mode: read-only")
    two = calls(CallPart("bash", {"command": "echo two"}))
    write = calls(CallPart("write", {"path": "a.txt", "content": "one"}))
    talk = await desk.session(go=[tasks("a", agent="git"), text("done")], a=[two, write, text("fine")])
    await talk.run("go")
    first, second = desk.results("a")
    assert "the agent type git allows only these tools: Bash(echo one:*), Write" in first
    assert "read-only" in second
    assert not (desk.house.cwd / "a.txt").exists()


async def test_types_of_a_project_count_when_it_is_trusted(desk):
    desk.write(desk.project, "finder", "description: Finds things.")
    desk.write(desk.house.cwd / ".claude" / "agents", "other", "name: other", "description: Other.")
    found = await desk.listed()
    assert found["agents"] == []
    assert all("zotctl trust grant" in one for one in found["problems"])
    talk = await desk.session(go=[tasks("a", agent="finder"), text("done")])
    await talk.run("go")
    assert 'there is no agent type "finder", the types here are: none' in desk.results()[0]
    await desk.trust()
    found = await desk.listed()
    assert [(one["name"], one["source"]) for one in found["agents"]] == [
        ("finder", ".zot/agents"),
        ("other", ".claude/agents"),
    ]


async def test_the_list_says_what_is_refused_and_what_has_no_effect(desk):
    desk.write(desk.home, "a", "description: One.", "color: red", "model: sonnet", "permissionMode: bypassPermissions")
    desk.write(desk.home, "b", "name: b")
    desk.write(desk.home, "c", "description: Three.", "disallowed-tools: Bash")
    desk.write(desk.home, "d", "name: a", "description: Hidden.")
    found = await desk.listed()
    (one,) = found["agents"]
    assert (one["name"], one.get("model", "")) == ("a", "")
    assert "color, permissionMode bypassPermissions has no effect in zot" in one["remarks"][0]
    assert "the model sonnet is a word of Claude Code" in one["remarks"][1]
    assert [
        what
        for what in ("no description", "disallowedTools demands", "is hidden by")
        for problem in found["problems"]
        if what in problem
    ] == [
        "no description",
        "disallowedTools demands",
        "is hidden by",
    ]


async def test_a_remark_is_told_once_in_the_session_that_uses_the_type(desk, look):
    desk.write(desk.home, "a", "description: One.", "color: red")
    once = tasks("a", agent="a")
    talk = await desk.session(go=[once, tasks("b", agent="a"), text("done")], a=[text("x")], b=[text("y")])
    events = await talk.run("go")
    assert ["color has no effect" in event["text"] for event in look.only(events, "notice")] == [True]
