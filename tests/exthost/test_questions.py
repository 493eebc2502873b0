"""What a program asks during a call: bounded, answered once, and over with the call."""

import asyncio

import pytest

from zotd.core.model_questions import QuestionReply
from zotd.core.person_questions import PersonAnswer
from zotd.core.ports import ToolContext
from zotd.exthost.questions import MAX_QUESTIONS, Questions
from zotd.wire import ext

PROMPT = (ext.PromptMessage("user", ({"type": "text", "text": "hello"},)),)


class Peer:
    """Keeps what is sent to the program."""

    def __init__(self, answers=1):
        """`has_all` is set when so many answers were sent."""
        self.sent = []
        self.has_all = asyncio.Event()
        self._answers = answers

    def send(self, frame):
        self.sent.append(frame)
        if len(self.sent) == self._answers:
            self.has_all.set()


def context(**fields):
    return ToolContext("s_1", "c_1", "/", {}, "/nowhere", lambda _: None, **fields)


async def during(questions, peer, *asked):
    """Ask these questions in a call that ends when they were answered."""

    async def call():
        for one in asked:
            questions.ask(one)
        await peer.has_all.wait()
        return ext.ToolResult("1")

    return await questions.during(call())


def asks(key="1", messages=PROMPT, **more):
    return ext.AskModel(key, "c_1", messages, **more)


async def test_the_model_gets_the_prompt_and_the_program_the_answer():
    asked = []

    async def ask_model(question):
        asked.append(question)
        return QuestionReply("accept", "hi", "m-1", "end_turn")

    peer = Peer()
    questions = Questions(peer.send, context(ask_model=ask_model), by="mcp-srv")
    await during(questions, peer, asks(system="Be brief.", max_tokens=5))
    assert peer.sent == [ext.ModelAnswer("1", "accept", "hi", "m-1", "end_turn")]
    assert (asked[0].by, asked[0].system, asked[0].max_tokens) == ("mcp-srv", "Be brief.", 5)
    assert [(one.role, one.content[0].text) for one in asked[0].messages] == [("user", "hello")]


async def test_of_a_thousand_questions_of_a_call_twenty_are_asked():
    count = 0

    async def ask_model(_):
        nonlocal count
        count += 1
        return QuestionReply("accept", "hi")

    async def ask(_):
        return PersonAnswer("accept")

    peer = Peer(1_000)
    questions = Questions(peer.send, context(ask_model=ask_model, ask=ask), by="x")
    mixed = [asks(str(number)) if number % 2 else ext.AskUser(str(number), "c_1", "?") for number in range(1_000)]
    await during(questions, peer, *mixed)
    assert count == MAX_QUESTIONS // 2
    refused = [frame for frame in peer.sent if frame.action == "cancel"]
    assert len(refused) == 1_000 - MAX_QUESTIONS
    assert {frame.reason for frame in refused if isinstance(frame, ext.ModelAnswer)} == {"a call may ask 20 questions"}


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ((), "the messages do not begin with one of the user"),
        ((ext.PromptMessage("system", ({"type": "text", "text": "x"},)),), 'a message has the unknown role "system"'),
        (
            (ext.PromptMessage("user", ({"type": "image", "mime_type": "image/png", "data": "?"},)),),
            "an image is invalid",
        ),
        ((ext.PromptMessage("user", ({"type": "text", "text": "x" * 200_001},)),), "the prompt has more than 200,000"),
    ],
)
async def test_a_prompt_that_no_model_takes_is_refused_with_the_reason(messages, why):
    async def ask_model(_):
        raise AssertionError("asked")

    peer = Peer()
    await during(Questions(peer.send, context(ask_model=ask_model), by="x"), peer, asks(messages=messages))
    (answer,) = peer.sent
    assert (answer.action, answer.reason[: len(why)]) == ("cancel", why)


async def test_a_question_is_over_with_its_call_and_none_is_asked_afterwards():
    ended = []

    async def ask_model(_):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    peer = Peer()
    questions = Questions(peer.send, context(ask_model=ask_model), by="x")

    async def call():
        questions.ask(asks())
        await asyncio.sleep(0)
        return ext.ToolResult("1")

    await questions.during(call())
    assert (ended, peer.sent) == ([True], [])
    questions.ask(asks("2"))
    assert [(frame.id, frame.action) for frame in peer.sent] == [("2", "cancel")]


async def test_in_a_call_that_cannot_ask_the_program_is_told_so():
    peer = Peer(2)
    await during(Questions(peer.send, context(), by="x"), peer, asks(), ext.AskUser("2", "c_1", "?"))
    assert {(frame.id, frame.action) for frame in peer.sent} == {("1", "cancel"), ("2", "cancel")}
