"""A question beside the conversation (`/btw`): answered from what the model knows, and not added to it."""

import asyncio
import signal
from contextlib import asynccontextmanager

import pytest

from zotd.client.fields import amount, child, children
from zotd.client.fields import text as text_of
from zotd.testing.live_daemon import DaemonProcess, serving
from zotd.testing.model_server import ModelServer
from zotd.testing.script import CallPart, Gate, Hang, Refusal, ScriptedReply, TextPart, calls, text
from zotd.testing.wire_client import WireClient
from zotd.wire.content import Tokens


@pytest.fixture
def world(tmp_path):
    """`async with world(script) as (client, server, session)`: a daemon with a session whose model says this."""

    @asynccontextmanager
    async def world(script, **options):
        async with (
            ModelServer(script) as server,
            serving(tmp_path) as place,
            WireClient.connect(place.socket) as client,
        ):
            settings = {"provider": "openai", "base_url": server.openai_url, "secrets": {"api_key": "k"}} | options
            created = await client.ask("session.create", cwd=str(place.cwd), **settings)
            session = session_of(created)
            await client.ask("attach", session=session)
            yield Here(server, place, client, session)

    return world


def session_of(created):
    return text_of(child(created, "session"), "id")


class Here:
    """A session, and what is around it."""

    def __init__(self, server, place, client, session):
        self.server = server
        self.place = place
        self.client = client
        self.session = session

    async def run(self, prompt):
        await self.client.ask("prompt", session=self.session, message=prompt)
        await self.client.until("done")

    async def beside(self, question, **more):
        return await self.client.ask("session.side_question", session=self.session, question=question, **more)


async def test_the_model_answers_from_the_conversation_and_nothing_is_added_to_it(world):
    answers = [calls(CallPart("bash", {"command": "echo needle"})), text("done"), text("It is a needle."), text("next")]
    async with world(answers) as here:
        await here.run("look")
        before = await here.client.ask("get_messages", session=here.session)
        found = await here.beside("what is it?")
        assert found["text"] == "It is a needle."
        assert await here.client.ask("get_messages", session=here.session) == before
        asked = here.server.requests[2]
        assert "needle" in str(asked.body)
        assert "what is it?" in asked.messages[-1]["content"]
        # It begins as the requests of the session do, so that its vendor has cached that.
        assert asked.messages[:2] == here.server.requests[1].messages[:2]
        await here.run("go on")
        assert "what is it?" not in str(here.server.requests[3].body)


async def test_pieces_of_the_answer_go_to_the_client_that_asked_only(world):
    async with world([text("hello"), ScriptedReply([TextPart(["It ", "is."])])]) as here:
        await here.run("hi")
        async with WireClient.connect(here.place.socket) as other:
            await other.ask("attach", session=here.session)
            await here.beside("what?", key="q_1")
            heard = [event for event in here.client.seen if event["type"] == "side_delta"]
            assert "".join(event["delta"] for event in heard) == "It is."
            assert {event["key"] for event in heard} == {"q_1"}
            await other.ask("ping")
            assert "side_delta" not in str(other.seen)


async def test_it_is_answered_while_a_run_goes_on_without_its_open_call(world):
    command = "until [ -e go ]; do sleep 0.01; done; echo ended"
    answers = [calls(CallPart("bash", {"command": command})), text("It waits."), text("done")]
    async with world(answers, mode="yolo") as here:
        await here.client.ask("prompt", session=here.session, message="wait")
        await here.client.until("tool_start")
        assert (await here.beside("what is it doing?"))["text"] == "It waits."
        assert "until [" not in str(here.server.requests[1].messages)
        (here.place.cwd / "go").touch()
        await here.client.until("done")
        assert "ended" in str(here.server.requests[2].body)


async def test_it_is_billed_to_the_session_and_shown_as_such(world):
    async with world([text("hello"), text("yes", usage=Tokens(input=1000, output=20))]) as here:
        await here.run("hi")
        before = (await here.client.ask("session.get", session=here.session))["usage"]
        found = await here.beside("is it?")
        after = (await here.client.ask("session.get", session=here.session))["usage"]
        assert after["input"] - before["input"] == found["tokens"]["input"] > 0
        assert (await here.client.ask("session.get", session=here.session))["state"] == "idle"


async def test_a_budget_that_is_used_up_refuses_it(world):
    async with world([text("hello")], budget_tokens=1) as here:
        await here.run("hi")
        answer = await here.client.answer("session.side_question", session=here.session, question="what?")
        assert answer["success"] is False
        assert "budget" in answer["error"]
        assert len(here.server.requests) == 1


async def test_a_model_that_fails_is_told_and_the_next_question_is_answered(world):
    async with world([text("hello"), Refusal(400, "no such thing"), text("now")]) as here:
        await here.run("hi")
        answer = await here.client.answer("session.side_question", session=here.session, question="what?")
        assert answer["success"] is False
        assert "no such thing" in answer["error"]
        assert (await here.beside("what?"))["text"] == "now"


async def test_one_question_is_answered_at_a_time(world):
    go = asyncio.Event()
    async with world([text("hello"), ScriptedReply([TextPart(["a"]), Gate(go), TextPart(["b"])])]) as here:
        await here.run("hi")
        async with WireClient.connect(here.place.socket) as other, asyncio.TaskGroup() as group:
            first = group.create_task(here.beside("what?", key="q"))
            await here.server.received(2)
            answer = await other.answer("session.side_question", session=here.session, question="and?")
            assert answer["code"] == "busy"
            go.set()
        assert first.result()["text"] == "ab"


@pytest.mark.parametrize("question", ["", "  ", "x" * 20_001])
async def test_an_empty_or_very_long_question_is_refused(world, question):
    async with world([text("hello")]) as here:
        answer = await here.client.answer("session.side_question", session=here.session, question=question)
        assert answer["code"] in {"bad_request", "too_large"}


async def test_a_question_that_a_crash_cuts_is_billed_and_leaves_the_session_at_rest(tmp_path):
    script = [text("hello", usage=Tokens(input=10, output=2)), ScriptedReply([TextPart(["a"]), Hang()])]
    async with ModelServer(script) as server:
        with DaemonProcess(tmp_path) as daemon:
            options = {"provider": "openai", "base_url": server.openai_url, "secrets": {"api_key": "k"}}
            async with WireClient.connect(daemon.place.socket) as client:
                created = await client.ask("session.create", cwd=str(daemon.place.cwd), **options)
                here = Here(server, daemon.place, client, session_of(created))
                await client.ask("attach", session=here.session)
                await here.run("hi")
                client.send("session.side_question", session=here.session, question="what?", key="q")
                await client.until("side_delta")
                daemon.end(signal.SIGKILL)
            daemon.start()
            async with WireClient.connect(daemon.place.socket) as client:
                await client.ask("attach", session=here.session)
                assert (await client.ask("session.get", session=here.session))["state"] == "idle"
                rows = children(await client.ask("usage.report", by="session"), "rows")
                assert [row["attempts"] for row in rows] == [2]
                assert amount(rows[0], "estimated_usd") > 0
    assert len(server.requests) == 2
