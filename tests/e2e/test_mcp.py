"""MCP servers in a session: the user's own, and a project's where it is trusted."""

import json

import pytest

from tests.bridges.conftest import program, warm_bridges
from tests.e2e.shop import until_state
from zotd.core import supervision
from zotd.core.supervision import LATE
from zotd.testing.script import CallPart, calls, text


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Not ready until it says so: on a busy machine a bridge takes longer than the daemon waits for it."""
    monkeypatch.setattr(supervision, "READY_S", 60)


def configure(file, **servers):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"mcpServers": servers}))


async def test_the_model_calls_a_tool_of_a_server_of_the_user_s_own(shop, model, look):
    configure(
        shop.house.place.home / "mcp.json",
        first=program("sample_server"),
        second=program("sample_server"),
    )
    server = await model(calls(CallPart("first__echo", {"text": "hello"})), text("done"))
    watcher = await shop.house.connect()
    await watcher.ask("subscribe", topics=["extensions"])
    talk = await shop.open(server)
    await until_state(watcher, "mcp-first", "ready")
    result = look.only(await talk.run(), "tool_result")[0]
    assert (result["extension"], result["is_error"], result["content"][0]["text"]) == ("mcp-first", False, "hello")
    listed = (await talk.client.ask("ext.list", session=talk.id))["extensions"]
    assert [(one["name"], one["source"]) for one in listed] == [("mcp-first", "mcp"), ("mcp-second", "mcp")]


async def test_the_model_reads_a_server_s_instructions_while_the_server_is_there(shop, model):
    file = shop.house.place.home / "mcp.json"
    configure(file, srv={**program("sample_server"), "env": {"INSTRUCTIONS": "Echo before you speak."}})
    server = await model(text("one"), text("two"))
    watcher = await shop.house.connect()
    await watcher.ask("subscribe", topics=["extensions"])
    talk = await shop.open(server)
    await until_state(watcher, "mcp-srv", "ready")
    await talk.run()
    configure(file)
    await talk.client.ask("ext.reload", session=talk.id)
    await talk.run()
    said = '<instructions extension="mcp-srv">\\nEcho before you speak.\\n</instructions>'
    assert [
        said in json.dumps(request.body, ensure_ascii=False).replace('\\"', '"') for request in server.requests
    ] == [
        True,
        False,
    ]


async def test_a_server_s_prompt_is_a_command_that_begins_a_run(shop, model):
    configure(shop.house.place.home / "mcp.json", srv=program("sample_server"))
    server = await model(text("It is fine."))
    watcher = await shop.house.connect()
    await watcher.ask("subscribe", topics=["extensions"])
    talk = await shop.open(server)
    await until_state(watcher, "mcp-srv", "ready")
    found = await talk.ask("complete", kind="command", text="srv:rev")
    assert found["items"] == ["srv:review"]
    await talk.ask("run_command", name="srv:review", args="a.py")
    await talk.client.until("done")
    assert "Review a.py kindly." in str(server.requests[0].body)


async def test_a_resource_that_a_prompt_mentions_is_read_for_the_model(shop, model):
    configure(shop.house.place.home / "mcp.json", srv=program("sample_server"))
    server = await model(text("I will."))
    watcher = await shop.house.connect()
    await watcher.ask("subscribe", topics=["extensions"])
    talk = await shop.open(server)
    await until_state(watcher, "mcp-srv", "ready")
    await talk.run("What does @srv:memo://one say?")
    assert "remember the milk" in str(server.requests[0].body)


async def test_resources_are_completed_before_files_that_fit_less(shop, model):
    configure(shop.house.place.home / "mcp.json", srv=program("sample_server"))
    (shop.house.cwd / "srv.txt").write_text("")
    watcher = await shop.house.connect()
    await watcher.ask("subscribe", topics=["extensions"])
    talk = await shop.open(await model(text("hi")))
    await until_state(watcher, "mcp-srv", "ready")
    found = await talk.ask("complete", kind="file", text="srv")
    assert found["items"] == ["srv:memo://one", "srv.txt"]
    assert found["found"][0] == {"text": "srv:memo://one", "detail": "memo", "source": "mcp-srv"}
    assert (await talk.ask("complete", kind="file", text=""))["items"][-1] == "srv:memo://one"
    assert "found" not in await talk.ask("complete", kind="file", text="srv.t")


@pytest.mark.parametrize("variables", [{"ZOT_EXT_LISTED_MCP_TOOLS": "3"}])
async def test_with_many_tools_the_model_searches_and_calls_what_it_finds(shop, model, results):
    configure(shop.house.place.home / "mcp.json", srv=program("sample_server"))
    server = await model(
        calls(CallPart("find_tools", {"query": "say it back"})),
        calls(CallPart("srv__echo", {"text": "hello"})),
        text("done"),
    )
    watcher = await shop.house.connect()
    await watcher.ask("subscribe", topics=["extensions"])
    talk = await shop.open(server)
    await until_state(watcher, "mcp-srv", "ready")
    await talk.run()
    listed = [{tool["function"]["name"] for tool in request.body["tools"]} for request in server.requests]
    assert ["find_tools" in names for names in listed] == [True, True, True]
    assert ["srv__echo" in names for names in listed] == [False, True, True]
    assert "srv__crash" not in listed[2]
    assert "srv__echo: Says it back." in results(server.requests[1])[0]
    assert results(server.requests[2])[1] == "hello"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"decision": "allow", "args": {"seats": "2", "place": "window"}}, "2 at the window"),
        ({"decision": "deny"}, "decline"),
    ],
)
async def test_a_question_of_a_server_is_answered_by_any_client(shop, model, results, answer, told):
    configure(shop.house.place.home / "mcp.json", srv=program("sample_server"))
    server = await model(calls(CallPart("srv__book")), text("done"))
    watcher = await shop.house.connect()
    await watcher.ask("subscribe", topics=["extensions"])
    talk = await shop.open(server)
    await until_state(watcher, "mcp-srv", "ready")
    other = await shop.house.follow(talk.id)
    await talk.ask("prompt", message="Book!")
    question = (await other.until("approval_requested"))[-1]
    assert (question["tool"], question["args"]) == ("question", {"seats": "", "place": "aisle"})
    assert question["preview"].startswith("mcp-srv asks: Which seats?")
    decided = {"approval": question["approval"], "args_digest": question["args_digest"], **answer}
    await other.ask("approve", **decided)
    await talk.until("done")
    assert results(server.requests[1]) == [told]


async def test_a_question_is_over_with_its_call(shop, model):
    configure(shop.house.place.home / "mcp.json", srv=program("sample_server"))
    server = await model(calls(CallPart("srv__book")), text("done"))
    watcher = await shop.house.connect()
    await watcher.ask("subscribe", topics=["extensions"])
    talk = await shop.open(server)
    await until_state(watcher, "mcp-srv", "ready")
    await talk.ask("prompt", message="Book!")
    question = (await talk.until("approval_requested"))[-1]
    await talk.ask("abort")
    resolved = (await talk.until("approval_resolved"))[-1]
    assert (resolved["approval"], resolved["decision"]) == (question["approval"], "cancelled")
    await talk.until("done")


async def test_a_project_s_servers_wait_for_trust(shop, model):
    configure(shop.house.cwd / ".mcp.json", local=program("odd_server", "hi"))
    server = await model(text("one"), text("two"))
    await (await shop.open(server)).run()
    shop.env["ZOT_TRUST"] = "1"
    watcher = await shop.house.connect()
    await watcher.ask("subscribe", topics=["extensions"])
    talk = await shop.open(server)
    await until_state(watcher, "mcp-local", "ready")
    await talk.run()
    assert ["local__" in str(request.body["tools"]) for request in server.requests] == [False, True]


async def test_a_server_that_is_added_is_there_after_a_reload(shop, model, look, monkeypatch):
    warm_bridges(monkeypatch)
    file = shop.house.place.home / "mcp.json"
    server = await model(text("hi"), calls(CallPart("srv__echo", {"text": "hello"})), text("done"))
    talk = await shop.open(server)
    await talk.run()
    configure(file, srv=program("sample_server"))
    reloaded = await talk.client.ask("ext.reload", session=talk.id)
    assert (reloaded["ready"], reloaded["errors"]) == (["mcp-srv"], [])
    assert look.only(await talk.run(), "tool_result")[0]["content"][0]["text"] == "hello"
    file.write_text("{")
    reloaded = await talk.client.ask("ext.reload", session=talk.id)
    assert (reloaded["stopped"], len(reloaded["errors"])) == ([], 1)


async def test_a_tool_of_a_server_that_is_started_again_is_not_called_unknown(shop, model, look, tmp_path, monkeypatch):
    monkeypatch.setattr(supervision, "READY_S", 8)  # a bridge takes half a second, or several on a busy machine
    configure(shop.house.place.home / "mcp.json", odd=program("odd_server", f"once {tmp_path / 'mark'}"))
    server = await model(calls(CallPart("odd__hi")), text("lost"), calls(CallPart("odd__hi")), text("done"))
    watcher = await shop.house.connect()
    await watcher.ask("subscribe", topics=["extensions"])
    talk = await shop.open(server)
    await until_state(watcher, "mcp-odd", "ready")
    await talk.run()
    await until_state(watcher, "mcp-odd", "ready")  # as far as it ever is
    said = look.only(await talk.run(), "tool_result")[0]["content"][0]["text"]
    assert said.startswith(
        f'the tool "odd__hi" is not available at the moment: mcp-odd {LATE}; it restarts by itself'
    ), said
