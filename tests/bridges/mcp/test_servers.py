"""The bridge to a real MCP server, from the host's side."""

import base64
import json

import psutil
import pytest

from tests.bridges.conftest import program
from tests.bridges.sample_server import PNG
from zotd.testing.ext_driver import text_of

COLD = pytest.mark.usefixtures("cold_bridge")


def test_tools_are_offered_under_the_name_of_their_server(sample):
    tools = sample().tools
    assert {"srv__echo", "srv__weather", "srv__crash"} <= tools.keys()
    echo = tools["srv__echo"]
    assert echo["description"] == "Says it back."
    assert echo["schema"]["required"] == ["text"]
    assert tools["srv__weather"]["output_schema"]["type"] == "object"


def test_the_servers_hints_say_what_may_be_repeated_and_what_may_run_beside_others(sample):
    tools = sample().tools
    hints = {name: (tools[f"srv__{name}"]["replay"], tools[f"srv__{name}"]["parallel"]) for name in ("echo", "weather")}
    assert hints == {"echo": ("safe", True), "weather": ("idempotent", False)}
    assert (tools["srv__crash"]["replay"], tools["srv__crash"]["parallel"]) == ("never", False)


def test_names_are_what_every_model_takes_and_lead_to_their_tools(odd):
    driver = odd("names")
    assert next(iter(driver.tools)) == "srv__a_b"
    assert [len(name) for name in driver.tools] == [8, 15, 64, 64]
    assert [text_of(driver.call_tool(name)) for name in driver.tools] == ["a.b", "a b", "x" * 70, "x" * 71]


def test_a_list_of_several_pages_is_read_to_its_end(odd):
    assert list(odd("pages").tools) == ["srv__page0", "srv__page1", "srv__page2"]


def test_a_tool_that_needs_a_task_is_not_offered(odd):
    assert list(odd("tasks").tools) == ["srv__hi"]


def test_a_server_without_tools_is_fine(odd):
    assert odd("no tools").tools == {}


def test_content_is_shown_as_it_is_or_told_about(sample):
    result = sample().call_tool("srv__everything")
    image = {"type": "image", "mime_type": "image/png", "data": base64.b64encode(PNG).decode()}
    assert result["content"] == [
        {"type": "text", "text": "some text"},
        image,
        {"type": "text", "text": "[image, image/svg+xml, 6 bytes, which cannot be shown]"},
        {"type": "text", "text": "[audio, audio/wav, 6 bytes, which cannot be shown]"},
        {"type": "text", "text": "the memo"},
        {**image, "data": "AAAA"},
        {"type": "text", "text": "[resource memo://3, of unknown type, 3 bytes, which cannot be shown]"},
        {"type": "text", "text": "[resource four: memo://4 (the fourth)]"},
    ]
    assert result["is_error"] is False


def test_the_server_is_told_the_span_of_a_call(sample):
    driver = sample()
    span = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    key = driver.request("tool_call", name="srv__span", args={}, traceparent=span)
    assert text_of(driver.expect("tool_result", id=key)) == span
    assert text_of(driver.call_tool("srv__span")) == "none"


def test_a_structured_result_is_passed_on(sample):
    result = sample().call_tool("srv__weather", city="Berlin")
    assert result["structured_content"] == {"Berlin": 16}
    assert json.loads(text_of(result)) == {"Berlin": 16}


def test_a_failure_is_an_error_and_the_server_continues(sample):
    driver = sample()
    for name, words in (
        ("fail", "this failed"),
        ("echo", "text"),  # which is missing
        ("large", "result over 4 MiB"),
        ("none", "the MCP server srv has no tool srv__none now"),
    ):
        result = driver.call_tool(f"srv__{name}")
        assert (result["is_error"], words in text_of(result)) == (True, True), text_of(result)
    assert text_of(driver.call_tool("srv__echo", text="still here")) == "still here"


def test_a_result_that_mcp_does_not_allow_is_an_error(odd):
    result = odd("bad result").call_tool("srv__hi")
    assert result["is_error"]
    assert text_of(result).startswith("the MCP server's result cannot be used: ")


def test_an_error_with_the_code_of_a_lost_connection_is_what_the_server_says(odd):
    driver = odd("code")
    for _ in range(2):
        result = driver.call_tool("srv__hi")
        assert (result["is_error"], text_of(result)) == (True, "too many requests")


def test_progress_is_passed_on(sample):
    driver = sample()
    call = driver.request("tool_call", name="srv__steps", args={})
    assert driver.expect("tool_progress", id=call)["text"] == "1/2 halfway"
    assert driver.expect("tool_progress", id=call)["text"] == "2/2"
    assert text_of(driver.expect("tool_result", id=call)) == "done"


def test_a_call_that_is_cancelled_is_cancelled_in_the_server(sample):
    driver = sample()
    call = driver.request("tool_call", name="srv__endless", args={})
    driver.expect("tool_progress", id=call)
    asking = driver.request("tool_call", name="srv__was_cancelled", args={})
    driver.send("tool_cancel", id=call)
    assert text_of(driver.expect("tool_result", id=call)) == "cancelled"
    assert text_of(driver.expect("tool_result", id=asking)) == "yes"
    driver.send("tool_cancel", id=call)  # once more, too late
    assert text_of(driver.call_tool("srv__echo", text="still here")) == "still here"


def test_a_changed_list_of_tools_is_reported(sample):
    driver = sample()
    driver.call_tool("srv__replace")
    assert driver.expect("unregister")["name"] == "srv__fail"
    assert driver.expect("register_tool")["name"] == "srv__later"
    assert text_of(driver.call_tool("srv__later")) == "here"
    assert driver.call_tool("srv__fail")["is_error"]


def test_a_server_gets_the_variables_that_it_names_and_no_others(sample):
    driver = sample(
        env={"MINE": "${TOKEN}", "MODE": "${MODE:-quiet}", "PLAIN": "$TOKEN"}, A_TOKEN="no", TOKEN="t0p-secret"
    )
    variables = driver.call_tool("srv__environment")["structured_content"]
    assert (variables["MINE"], variables["MODE"], variables["PLAIN"]) == ("t0p-secret", "quiet", "$TOKEN")
    assert variables.keys() & {"TOKEN", "A_TOKEN"} == set()
    assert "PATH" in variables
    assert variables["cwd"].endswith("/project")


@COLD
def test_the_list_of_processes_shows_no_secret_of_a_bridge(sample):
    driver = sample(env={"MINE": "${TOKEN}"}, TOKEN="t0p-secret")
    assert psutil.Process(driver.pid).cmdline()[-3] == "srv"
    assert "t0p-secret" not in " ".join(psutil.Process(driver.pid).cmdline())


def test_a_server_is_told_where_the_session_works_or_where_its_entry_has_it_work(sample, tmp_path):
    directory = tmp_path / "project"
    (directory / "sub").mkdir(parents=True)
    for given, root in (({}, directory), ({"cwd": "sub"}, directory / "sub")):
        assert sample(**given).call_tool("srv__roots")["structured_content"]["result"] == [root.as_uri()]


def test_a_server_s_instructions_are_passed_on(sample):
    driver = sample(env={"INSTRUCTIONS": "Echo before you speak."})
    assert driver.expect("instructions")["text"] == "Echo before you speak."


def test_a_server_runs_where_its_entry_says(sample, tmp_path):
    (tmp_path / "project" / "sub").mkdir(parents=True)
    assert sample(cwd="sub").call_tool("srv__environment")["structured_content"]["cwd"].endswith("/project/sub")


def test_what_a_server_prints_beside_the_protocol_is_skipped_and_logged(odd):
    driver = odd("chatty")
    assert text_of(driver.call_tool("srv__hi")) == "hi"
    assert "not an MCP message: b'Welcome to my server!" in driver.log()


@COLD
def test_hello_does_not_wait_for_the_server(launch):
    driver = launch(program("odd_server", "silent"))
    assert driver.expect("hello")["name"] == "mcp-srv"
    assert driver.shut_down() == 0


@COLD
def test_the_end_of_stdin_ends_bridge_and_server(odd):
    driver = odd("")
    [server] = psutil.Process(driver.pid).children()
    driver.close_stdin()
    assert driver.end() == 0
    assert not server.is_running()
    assert driver.log().splitlines()[-1] == "goodbye"


@COLD
def test_a_server_that_takes_its_time_is_sent_sigterm(odd):
    driver = odd("slow")
    assert driver.shut_down() == 0
    assert driver.log().splitlines()[-1] == "goodbye after SIGTERM"


@COLD
def test_a_stubborn_server_ends_with_its_bridge(odd):
    driver = odd("stubborn")
    [server] = psutil.Process(driver.pid).children()
    assert driver.shut_down() == 0
    assert not server.is_running()
