"""Tools of the host that an extension calls."""

import json
import re

import pytest

from zotd.testing.ext_driver import text_of

SOURCE = {
    "python": """
        def show(result):
            return [result.text, result.is_error, result.truncated, [image.mime_type for image in result.images]]

        @ext.tool
        async def coroutine(path: str):
            return show(await ext.call_tool("read", {"path": path}))

        @ext.tool
        def plain(path: str):
            return show(ext.call_tool("read", {"path": path}).result(5))
        """,
    "typescript": """
        const show = ({ text, is_error, truncated, images }) => {
          return [text, is_error, truncated, images.map((image) => image.mime_type)];
        };
        const options = { description: "", args: { path: arg.string() } };
        ext.tool("coroutine", options, async ({ path }) => show(await ext.callTool("read", { path })));
        ext.tool("plain", options, ({ path }) => ext.callTool("read", { path }).then(show));
        """,
}


@pytest.mark.parametrize("tool", ["coroutine", "plain"])
def test_an_extension_calls_a_tool_of_the_host(start_program, tool):
    driver = start_program(**SOURCE)
    call_id = driver.request("tool_call", name=tool, args={"path": "x"}, session_id="s")

    asked = driver.expect("call_tool")
    blocks = [{"type": "text", "text": "one"}, {"type": "image", "mime_type": "image/png", "data": "YQ=="}]
    driver.send("tool_result", id=asked["id"], content=[*blocks, {"type": "new"}], is_error=True, truncated=True)

    assert asked == {
        "type": "call_tool",
        "id": asked["id"],
        "name": "read",
        "args": {"path": "x"},
        "parent_id": call_id,
        "session_id": "s",
    }
    assert json.loads(text_of(driver.expect("tool_result", id=call_id))) == ["one", True, True, ["image/png"]]


@pytest.mark.parametrize("tool", ["coroutine", "plain"])
def test_a_call_to_a_host_that_goes_away_fails(start_program, tool):
    driver = start_program(**SOURCE)
    call_id = driver.request("tool_call", name=tool, args={"path": "x"})
    driver.expect("call_tool")

    driver.close_stdin()

    assert json.loads(text_of(driver.expect("tool_result", id=call_id))) == ["the host has gone", True, False, []]
    assert driver.end() == 0


def test_a_cancelled_coroutine_cancels_what_it_has_asked_for(start_program):
    driver = start_program(**SOURCE)
    call_id = driver.request("tool_call", name="coroutine", args={"path": "x"})
    asked = driver.expect("call_tool")

    driver.send("tool_cancel", id=call_id)

    driver.expect("call_tool_cancel", id=asked["id"])
    driver.expect("tool_result", id=call_id)


def test_an_answer_in_time_or_an_error(start_program):
    driver = start_program(
        python="""
            @ext.tool
            def impatient():
                return ext.call_tool("read").result(0.01)
            """,
        typescript="""
            ext.tool("impatient", { description: "" }, () => {
              return ext.callTool("read", {}, { signal: AbortSignal.timeout(10) });
            });
            """,
    )

    answer = driver.call_tool("impatient")

    assert answer["is_error"] is True
    assert re.search("has not answered within 0.01 s|timed out|timeout", text_of(answer))
