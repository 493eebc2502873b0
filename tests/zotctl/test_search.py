"""`zotctl search` and `session.search`, in a real daemon."""

import json

import pytest

from zotd.client.errors import CallError


@pytest.fixture
def talk(live):
    """The ID of a session with one question and answer."""
    session = live.session(live.model("the purple answer"))
    code, _, err = live.zotctl("send", "--session", "tests", "the purple question", "--wait")
    assert (code, err) == (0, "")
    return session


def refused(live, **fields):
    with live.connect() as connection, pytest.raises(CallError) as caught:
        connection.call("session.search", fields)
    return caught.value


def test_search_finds_prompts_and_replies_newest_first(live, talk):
    code, out, err = live.zotctl("search", "purple")
    lines = out.splitlines()
    assert (code, err, len(lines)) == (0, "", 4)
    assert talk in lines[0]
    assert "tests" in lines[0]
    assert [lines[1], lines[3]] == ["  assistant: the purple answer", "  user: the purple question"]
    assert live.zotctl("search", '"purple question"')[1].count("\n") == 2
    assert live.zotctl("search", "question", "answer") == (0, "", "")


def test_json_has_the_fields_of_the_protocol_and_the_limit_holds(live, talk):
    found = json.loads(live.zotctl("search", "purple", "--limit", "1", "--json")[1])
    (hit,) = found.pop("hits")
    assert found == {"v": 1, "complete": True}
    assert (hit["session"], hit["name"], hit["cwd"], hit["role"]) == (talk, "tests", str(live.cwd), "assistant")
    assert hit["snippet"] == "the purple answer"
    with live.connect() as connection:
        page = connection.call("session.history", session=talk, before=hit["seq"] + 1, limit=1)
    assert page["messages"][0]["content"] == [{"type": "text", "text": "the purple answer"}]


def test_a_cursor_leads_to_older_hits_and_only_a_cursor_does(live, talk):
    with live.connect() as connection:
        first = connection.call("session.search", query="purple", limit=1)
        second = connection.call("session.search", query="purple", limit=1, cursor=first["cursor"])
    assert [first["hits"][0]["role"], second["hits"][0]["role"]] == ["assistant", "user"]
    assert "cursor" not in second
    assert refused(live, query="purple", cursor="yesterday").code == "bad_request"


def test_a_deleted_session_is_found_no_more(live, talk):
    with live.connect() as connection:
        connection.call("hello", client={"name": "t", "kind": "t", "version": "1"}, role="admin")
        connection.call("session.delete", session=talk)
    assert live.zotctl("search", "purple") == (0, "", "")


@pytest.mark.parametrize("words", ['"', "AND OR NOT", "a*b(c", "-x"])
def test_search_accepts_any_words(live, words):
    assert live.zotctl("search", "--", words) == (0, "", "")


@pytest.mark.parametrize("query", ["", "   ", "x" * 1001])
def test_search_refuses_an_empty_or_overlong_query(live, query):
    error = refused(live, query=query)
    assert (error.code, str(error)) == ("bad_request", "a query has 1 to 1000 characters")
