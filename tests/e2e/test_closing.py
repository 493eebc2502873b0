"""A session that is closed or deleted while others have commands for it: each comes before, or after, or is refused."""

import pytest

from zotd.testing.script import Hang, ScriptedReply, text

OPTIONS = {"provider": "ollama", "model": "m"}

COMMANDS: tuple[tuple[str, dict[str, object]], ...] = (
    ("session.rename", {"name": "sea"}),
    ("session.rename", {"name": "land"}),
    ("prompt", {"message": "go"}),
    ("set_mode", {"mode": "ask"}),
    ("clear", {}),
    ("get_messages", {}),
)


async def made(client, house, server):
    created = await client.ask("session.create", cwd=str(house.cwd), base_url=server.openai_url, **OPTIONS)
    return created["session"]["id"]


async def codes(client, requests):
    """How each of these requests was answered; None: it was done."""
    answers: dict[object, object] = {}
    while not answers.keys() >= set(requests):
        frame = await client.frame()
        answers[frame.get("id")] = frame.get("code")
    return [answers[request] for request in requests]


@pytest.mark.parametrize("close", ["session.close", "session.delete"])
async def test_commands_beside_it_are_done_or_refused_and_nothing_is_said_of_the_disk(house, model, close):
    server = await model(*[text("fine")] * 200)
    admin = await house.connect(role="admin")
    others = [await house.connect(role="admin") for _ in range(3)]
    found: set[str | None] = set()
    for turn in range(30):
        session = await made(admin, house, server)
        requests = []
        for number, client in enumerate(others):
            order = COMMANDS[(turn + number) % 6 :] + COMMANDS[: (turn + number) % 6]
            requests.append([client.send(command, session=session, **fields) for command, fields in order * 2])
            if number == turn % 3:
                closing = [admin.send(close, session=session) for _ in range(2)]
        found |= set(await codes(admin, closing))
        for client, sent in zip(others, requests, strict=True):
            found |= set(await codes(client, sent))
    assert found <= {None, "conflict", "not_found", "busy", "cancelled"}
    status = await admin.ask("daemon.status")
    assert status["warnings"] == []


async def test_who_comes_while_it_is_being_closed_waits_and_finds_it_as_it_is_stored(house, model):
    server = await model(ScriptedReply([Hang()]), text("fine"), text("fine"))
    client, other = await house.connect(), await house.connect()
    session = await made(client, house, server)
    await client.ask("prompt", session=session, message="first")
    await server.received(1)
    await client.ask("session.close", session=session)
    await other.ask("prompt", session=session, message="second")
    await server.received(2)
    await house.follow(session, other)
    await other.ask("prompt", session=session, message="third")
    await other.until("done")
    said = [message["role"] for message in (await other.ask("get_messages", session=session))["messages"]]
    assert said[:3] == ["user", "user", "assistant"]
