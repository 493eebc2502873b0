"""Resources of servers: tools for the model, and mentions in prompts."""

import pytest

from zotd.bridges.mcp.resources import ServerResources
from zotd.testing.ext_driver import text_of


@pytest.mark.parametrize(
    ("prompt", "uris"),
    [
        ("Read @srv:memo://one, then @srv:file:///a%20b.txt.", ["memo://one", "file:///a%20b.txt"]),
        ("(@srv:memo://one) @srv:memo://one", ["memo://one"]),
        ("me@srv:memo://one @@srv:memo://one @other:memo://one @srv:one @srv:", []),
        ("@srv:memo:1?x=y", ["memo:1?x=y"]),
    ],
)
def test_a_mention_is_a_word_with_the_server_and_a_uri(prompt, uris):
    assert ServerResources("srv").mentions(prompt) == uris


def test_the_host_is_told_what_can_be_mentioned(sample):
    items = [{"text": "srv:memo://one", "detail": "memo"}]
    assert sample().expect("mentions")["items"] == items


def test_no_more_mentions_are_read_than_fit():
    prompt = " ".join(f"@srv:memo://{number}" for number in range(20))
    assert len(ServerResources("srv").mentions(prompt)) == 10


def test_a_name_that_a_tool_of_the_server_has_is_left_to_it():
    resources = ServerResources("srv")
    assert list(resources.registrations({"srv__read_resource"}, is_used=True)) == ["srv__list_resources"]
    assert resources.tool("srv__read_resource") is None
    assert resources.registrations({}, is_used=False) == {}


def test_the_model_lists_and_reads_resources(sample):
    driver = sample()
    assert driver.tools["srv__read_resource"]["replay"] == "safe"
    listed = text_of(driver.call_tool("srv__list_resources")).splitlines()
    assert listed[0] == "memo://one (memo, text/plain, The first memo.)"
    assert listed[1].startswith("memo://{number}/notes (")
    assert text_of(driver.call_tool("srv__list_resources", contains="FIRST")).splitlines() == listed[:1]
    assert text_of(driver.call_tool("srv__list_resources", contains="no such")) == "there are no such resources"
    assert text_of(driver.call_tool("srv__read_resource", uri="memo://one")) == "remember the milk"
    assert driver.call_tool("srv__read_resource", uri="memo://none")["is_error"]
    assert text_of(driver.call_tool("srv__read_resource")) == "`uri` is missing"


def test_a_mentioned_resource_is_given_to_the_model_beside_the_prompt(sample):
    driver = sample()
    key = driver.request(
        "event_intercept", event="user_prompt_submit", text="See @srv:memo://one and @srv:memo://none."
    )
    context = driver.expect("event_intercept_response", id=key)["context"]
    first, second = context.split("\n\n")
    assert first == '<resource server="srv" uri="memo://one">\nremember the milk\n</resource>'
    assert second.startswith("memo://none could not be read: ")
    key = driver.request("event_intercept", event="user_prompt_submit", text="nothing")
    assert driver.expect("event_intercept_response", id=key) == {"type": "event_intercept_response", "id": key}


def test_a_long_resource_is_cut_and_cannot_end_early(sample):
    driver = sample()
    key = driver.request("event_intercept", event="user_prompt_submit", text="@srv:memo://1/notes")
    context = driver.expect("event_intercept_response", id=key)["context"]
    assert context.endswith("more characters]\n</resource>")
    assert (len(context) < 20_000, context.count("</resource>")) == (True, 1)


def test_a_server_without_resources_has_no_such_tools(odd):
    driver = odd("")
    assert list(driver.tools) == ["srv__hi"]
