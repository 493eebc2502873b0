"""Questions of servers to the model."""

import json

import pytest

from tests.bridges.conftest import program
from zotd.testing.ext_driver import text_of


def think(driver, session="s_1", **args):
    return driver.request("tool_call", name="srv__think", args=args, session_id=session)


def answer(driver, question, **fields):
    driver.send("model_answer", id=question["id"], **{"action": "accept", "text": "Hi.", "model": "m-1", **fields})


def test_a_question_to_the_model_has_its_prompt_and_the_server_gets_the_answer(sample):
    driver = sample()
    call = think(driver, prompt="How are you?")
    question = driver.expect("ask_model", tool_call=call)
    assert question["messages"] == [{"role": "user", "content": [{"type": "text", "text": "How are you?"}]}]
    assert (question["system"], question["max_tokens"]) == ("Be brief.", 50)
    assert driver.expect("tool_progress", id=call)["text"] == "waiting for the model"
    answer(driver, question, stop="end_turn")
    assert text_of(driver.expect("tool_result", id=call)) == "m-1 says Hi. (endTurn)"


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"text": "one two", "stop": "length"}, "m-1 says one two (maxTokens)"),
        ({"text": "one END two", "stop": "end_turn"}, "m-1 says one  (stopSequence)"),
    ],
)
def test_the_server_is_told_why_the_model_stopped(sample, fields, told):
    driver = sample()
    call = think(driver, stop="END")
    answer(driver, driver.expect("ask_model", tool_call=call), **fields)
    assert text_of(driver.expect("tool_result", id=call)) == told


@pytest.mark.parametrize(
    ("action", "reason"), [("decline", "the user does not want it"), ("cancel", "no budget is left")]
)
def test_a_refusal_is_an_error_with_its_reason(sample, action, reason):
    driver = sample()
    call = think(driver)
    question = driver.expect("ask_model", tool_call=call)
    driver.send("model_answer", id=question["id"], action=action, reason=reason)
    result = driver.expect("tool_result", id=call)
    assert (result["is_error"], reason in text_of(result)) == (True, True)


def test_what_no_model_takes_is_refused_at_once(sample):
    driver = sample()
    for tool, args, why in (
        ("srv__listen", {}, "the model takes text and images, no content of type `audio`"),
        ("srv__think", {"prompt": "x" * 200_000}, "the prompt has more than 200,000 characters"),
    ):
        result = driver.call_tool(tool, **args)
        assert (result["is_error"], why in text_of(result)) == (True, True), text_of(result)


def test_the_model_is_not_asked_when_it_is_unknown_whose_call_asks(sample):
    driver = sample()
    other = driver.request("tool_call", name="srv__endless", args={}, session_id="s_2")
    driver.expect("tool_progress", id=other)
    call = think(driver)
    assert "during a call of a tool, of one session at a time" in text_of(driver.expect("tool_result", id=call))


@pytest.fixture
def greedy(start):
    return start(program("greedy_server"))


@pytest.mark.parametrize(("tool", "refused"), [("at_once", 980), ("in_a_row", 80)])
def test_of_a_call_without_end_twenty_questions_are_asked_and_the_others_are_refused(greedy, tool, refused):
    call = greedy.request("tool_call", name=f"srv__{tool}", args={}, session_id="s_1")
    for _ in range(20):
        answer(greedy, greedy.expect("ask_model", tool_call=call))
    told = text_of(greedy.expect("tool_result", id=call))
    assert told == f"20 answers, {refused} times: a call may ask 20 questions"


def test_a_prompt_of_ten_megabytes_is_refused_and_the_server_is_kept(greedy):
    assert "200,000 characters" in text_of(greedy.call_tool("srv__huge"))
    assert text_of(greedy.call_tool("srv__told")) == "[]"


def test_a_question_after_the_end_of_its_call_is_refused(greedy):
    call = greedy.request("tool_call", name="srv__late", args={}, session_id="s_1")
    assert text_of(greedy.expect("tool_result", id=call)) == "done"
    assert until_told(greedy).startswith(("the model can only be asked during a call", "the call that asked is over"))


def test_a_call_that_ends_ends_its_question(greedy):
    call = greedy.request("tool_call", name="srv__leaves", args={}, session_id="s_1")
    question = greedy.expect("ask_model", tool_call=call)
    assert text_of(greedy.expect("tool_result", id=call)) == "done without it"
    assert until_told(greedy) == "the call that asked is over"
    answer(greedy, question)  # too late
    assert until_told(greedy) == "the call that asked is over"


def until_told(driver):
    """What the server was told about a question whose call has ended."""
    while not (told := json.loads(text_of(driver.call_tool("srv__told")))):
        pass
    return told[0]["error"]["message"]
