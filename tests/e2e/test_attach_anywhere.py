"""A client of one daemon uses a session that another daemon of the same database has."""

import asyncio
import contextlib
import json
import os
import signal
import ssl

import aiohttp

from tests.e2e.fleet import name_of, number_of, output_of, until
from zotd.testing.live_daemon import free_port
from zotd.testing.script import CallPart, calls, text

BUSY = {"command": "echo x >> ran; echo started; read < go"}
"""Arguments of a command that runs until a test lets it end, and leaves a trace of each start."""


async def test_a_session_of_another_daemon_is_used_as_if_it_were_here(fleet, talk_in):
    one, two = fleet
    there = await talk_in(one, text("fine"), text("well"))
    await there.run("first")
    here = await two.follow(there.id)
    found = await here.run("second")
    assert [event["type"] for event in found if event["type"] == "done"]
    assert await here.texts() == await there.texts()
    assert [words for role, words in await here.texts() if role == "user"] == [["first"], ["second"]]
    assert (await here.ask("presence"))["clients"] != []


async def started(talk, house):
    """Have the session run the command until the test ends it."""
    os.mkfifo(house.cwd / "go")
    await talk.ask("prompt", message="go")
    await talk.until("tool_progress")


async def test_an_approval_is_decided_through_any_daemon_and_the_first_decision_wins(fleet, talk_in):
    one, two = fleet
    there = await talk_in(one, calls(CallPart("bash", {"command": "echo hi"})), text("done"), mode="ask")
    client = await two.connect(client={"name": "phone"}, role="approve", can_approve=True)
    here = await two.follow(there.id, client)
    await there.ask("prompt", message="go")
    asked = (await here.until("approval_requested"))[-1]
    decision = {"approval": asked["approval"], "args_digest": asked["args_digest"]}
    await here.ask("approve", decision="allow", **decision)
    assert await there.refused("approve", decision="deny", **decision) == "already_resolved"
    await here.until("done")
    assert (await there.texts())[-1] == ("assistant", ["done"])


async def test_a_run_is_aborted_through_another_daemon(fleet, talk_in):
    one, two = fleet
    there = await talk_in(one, calls(CallPart("bash", BUSY)), text("never said"))
    await started(there, one)
    here = await two.follow(there.id)
    await here.ask("abort")
    await here.until("done")
    assert await here.state() == "idle"


async def test_a_client_that_repeats_its_prompt_at_another_daemon_has_it_accepted_once(fleet, talk_in):
    one, two = fleet
    there = await talk_in(one, *[text("fine")] * 2)
    here = await two.follow(there.id)
    first = await there.ask("prompt", message="go", request_id="r_1")
    await there.until("done")
    again = await here.ask("prompt", message="go", request_id="r_1")
    assert again["input"] == first["input"]
    assert [role for role, _ in await here.texts()] == ["user", "assistant"]


async def test_a_client_gets_no_more_rights_at_another_daemon_than_it_has_at_its_own(fleet, talk_in):
    one, two = fleet
    there = await talk_in(one, text("fine"))
    client = await two.connect(client={"name": "reader"}, role="read")
    here = await two.follow(there.id, client)
    assert await here.refused("prompt", message="go") == "forbidden"
    await client.ask("hello", client={"name": "reader"}, role="admin")
    await here.ask("session.delete")
    assert await there.refused("get_messages") == "not_found"


async def test_the_clients_of_another_daemon_are_listed_with_their_names_and_know_themselves(fleet, talk_in):
    one, two = fleet
    there = await talk_in(one, text("fine"))
    client = await two.connect()
    said = await client.ask("hello", client={"name": "phone"})
    here = await two.follow(there.id, client)
    listed = (await there.ask("presence"))["clients"]
    assert said["connection"] in [one["id"] for one in listed if one["name"] == "phone"]
    await here.ask("detach")
    await there.client.until("presence")


async def test_a_client_continues_with_its_cursor_when_the_daemon_of_its_session_is_killed(fleet, talk_in):
    one, two = fleet
    there = await talk_in(one, calls(CallPart("bash", BUSY)), text("It was cut."))
    await started(there, one)
    here = await two.follow(there.id)
    cursor = {"epoch": here.epoch, "seq": max(frame.get("seq") or 0 for frame in here.client.seen)}
    one.daemon.end(signal.SIGKILL)
    (evicted,) = [event for event in await here.until("evicted") if event["type"] == "evicted"]
    assert name_of(one) in evicted["reason"]
    again = await two.follow(there.id, after=cursor)  # answers when the lease of the other daemon has expired
    assert (again.snapshot["mode"], again.snapshot["held"]) == ("resumed", True)
    await again.ask("run_command", name="continue")
    await again.until("done")
    assert (one.cwd / "ran").read_text() == "x\n"


async def test_what_a_client_sends_while_the_daemon_is_away_is_accepted_when_another_one_has_the_session(
    fleet, talk_in
):
    one, two = fleet
    there = await talk_in(one, *[text("fine")] * 2)
    await there.run("first")
    one.daemon.end(signal.SIGKILL)
    client = await two.connect()
    accepted = await client.ask("prompt", session=there.id, message="second", request_id="r_1")
    assert accepted["input"]
    here = await two.follow(there.id, client)
    while await here.state() != "idle":
        await client.event()
    assert [words for role, words in await here.texts() if role == "user"] == [["first"], ["second"]]


async def test_a_client_follows_a_session_from_a_daemon_that_is_drained_to_the_next_one(
    fleet, member, database, talk_in
):
    one, _ = fleet
    three = member("three")
    await until(database, "SELECT count(*) = 3 FROM daemons WHERE address <> ''")
    there = await talk_in(one, calls(CallPart("bash", BUSY)), text("all done"))
    await started(there, one)
    here = await three.follow(there.id)
    cursor = {"epoch": here.epoch, "seq": max(frame.get("seq") or 0 for frame in here.client.seen)}
    admin = await one.connect(client={"name": "test"}, role="admin")
    await admin.ask("daemon.drain")
    (one.cwd / "go").write_text("\n")
    await here.until("evicted")
    again = await three.follow(there.id, after=cursor)
    assert again.snapshot["mode"] == "resumed"
    while await again.state() != "idle":
        await again.client.event()
    assert (await again.texts())[-1] == ("assistant", ["all done"])
    assert (one.cwd / "ran").read_text() == "x\n"


async def test_clients_of_a_daemon_that_was_paused_are_sent_to_the_one_that_has_its_sessions(fleet, database, talk_in):
    one, two = fleet
    there = await talk_in(one, calls(CallPart("bash", BUSY)), text("It was cut."))
    await started(there, one)
    cursor = {"epoch": there.epoch, "seq": max(frame.get("seq") or 0 for frame in there.client.seen)}
    os.kill(one.daemon.pid, signal.SIGSTOP)
    try:
        await until(database, "SELECT owner = %s FROM sessions WHERE id = %s", number_of(database, two), there.id)
    finally:
        os.kill(one.daemon.pid, signal.SIGCONT)
    await there.until("evicted")
    again = await one.follow(there.id, after=cursor)  # which forwards it
    assert (again.snapshot["mode"], again.snapshot["held"]) == ("resumed", True)
    await again.ask("run_command", name="continue")
    await again.until("done")


async def test_daemons_with_different_keys_do_not_forward_clients(member, database, talk_in, tmp_path):
    other_key = tmp_path / "other-key"
    other_key.write_text("0123456789abcdef0123456789abcdef\n")
    other_key.chmod(0o600)
    one, two = member("one"), member("two", ZOT_FLEET_KEY_FILE=str(other_key))
    await until(database, "SELECT count(*) = 2 FROM daemons WHERE address <> ''")
    there = await talk_in(one, text("fine"))
    client = await two.connect()
    refusal = await client.answer("attach", session=there.id)
    assert refusal["code"] == "conflict"
    assert "has refused the fleet key" in refusal["error"]


async def test_a_daemon_without_a_door_warns_that_others_cannot_forward_clients_to_it(member, talk_in, tmp_path):
    one, two = member("one", ZOT_WEBSOCKET_LISTEN=None), member("two")
    status = await (await one.connect()).ask("daemon.status")
    assert any("set websocket.listen" in warning for warning in status["warnings"])
    there = await talk_in(one, text("fine"))
    client = await two.connect()
    refusal = await client.answer("attach", session=there.id)
    assert refusal["error"].endswith("it cannot be reached: it has no address for other daemons")


@contextlib.asynccontextmanager
async def between(certificate, target):
    """The address of a third party that shows a certificate of its own, and forwards everything to the real daemon."""
    shown = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    shown.load_cert_chain(certificate["ZOT_WEBSOCKET_TLS_CERT"], certificate["ZOT_WEBSOCKET_TLS_KEY"])
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE

    async def pump(source, sink):
        with contextlib.suppress(ConnectionError):
            while data := await source.read(65536):
                sink.write(data)
        sink.close()

    async def passed_on(reader, writer):
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", target, ssl=trusting)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(pump(reader, up_writer))
            tasks.create_task(pump(up_reader, writer))

    async with await asyncio.start_server(passed_on, "127.0.0.1", 0, ssl=shown) as server:
        yield f"wss://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_over_tls_any_certificate_will_do_but_not_that_of_a_third_party(member, database, talk_in, certificate):
    one, two = member("one", **certificate("one")), member("two", **certificate("two"))
    await until(database, "SELECT count(*) = 2 FROM daemons WHERE starts_with(address, 'wss://')")
    there = await talk_in(one, text("fine"))
    here = await two.follow(there.id)
    await here.run("go")

    port = free_port()
    async with between(certificate("third"), port) as address:
        settings = {
            "ZOT_FLEET_ADDRESS": address,
            "ZOT_WEBSOCKET_LISTEN": f"127.0.0.1:{port}",
            "ZOT_WEBSOCKET_HOSTS": address.removeprefix("wss://"),
        }
        three = member("three", **certificate("three"), **settings)
        await until(database, "SELECT count(*) = 3 FROM daemons WHERE address <> ''")
        watched = await talk_in(three, text("fine"))
        client = await two.connect()
        refusal = await client.answer("attach", session=watched.id)
    assert "has refused the fleet key" in refusal["error"]


async def test_the_command_line_makes_a_key_and_lists_the_daemons(fleet):
    one, two = fleet
    path = f"{one.place.home}/fleet-key"
    made = await output_of(one, "zotctl", "fleet", "key")
    assert made.splitlines()[0] == f"made the key {path}"
    assert "there is already" in await output_of(one, "zotctl", "fleet", "key")
    listed = json.loads(await output_of(one, "zotctl", "fleet", "status", "--json"))["daemons"]
    assert {one["name"]: (one["is_this"], one["state"]) for one in listed} == {
        name_of(one): (True, "running"),
        name_of(two): (False, "running"),
    }
    assert f"{name_of(one)} (this one)" in await output_of(one, "zotctl", "fleet", "status")


async def test_a_token_for_a_session_of_another_daemon_is_made_here_and_is_good_for_that_session_alone(fleet, talk_in):
    one, two = fleet
    there, other = await talk_in(one, text("fine")), await talk_in(one, text("no"))
    admin = await two.connect(client={"name": "test"}, role="admin")
    made = await admin.ask("token.create", name="phone", role="submit", session=there.id)
    door = (await admin.ask("daemon.status"))["websocket"]
    async with aiohttp.ClientSession() as http, http.ws_connect(door) as phone:

        async def answer(command, **fields):
            await phone.send_json({"type": command, "id": command, **fields})
            while (frame := await phone.receive_json()).get("id") != command:
                pass
            return frame

        assert (await answer("hello", token=made["token"]))["success"]
        assert (await answer("attach", session=there.id))["success"]
        assert (await answer("attach", session=other.id))["code"] == "forbidden"
    assert (await (await one.connect(client={"name": "test"}, role="admin")).ask("token.list"))["tokens"] == []


async def test_the_environment_of_a_client_does_not_reach_another_daemon(fleet, talk_in):
    one, two = fleet
    there = await talk_in(one, calls(CallPart("bash", {"command": "echo ${MARK-none}"})), text("done"))
    here = await two.follow(there.id, env={"PATH": os.environ["PATH"], "MARK": "leaked"})
    found = await here.run("go")
    (result,) = [event for event in found if event["type"] == "tool_result"]
    assert "none" in str(result["content"])
    assert "leaked" not in str(result["content"])


async def test_clients_leave_a_session_that_is_handed_over_although_its_daemon_still_works(fleet, talk_in):
    one, _ = fleet
    longer = await talk_in(one, calls(CallPart("bash", BUSY)), text("at last"))
    await started(longer, one)
    os.mkfifo(one.cwd / "soon")
    command = {"command": "echo started; read < soon"}
    there = await talk_in(one, calls(CallPart("bash", command)), text("all done"))
    await there.ask("prompt", message="go")
    await there.until("tool_progress")
    cursor = {"epoch": there.epoch, "seq": max(frame.get("seq") or 0 for frame in there.client.seen)}
    admin = await one.connect(client={"name": "test"}, role="admin")
    await admin.ask("daemon.drain")
    (one.cwd / "soon").write_text("\n")
    await there.until("evicted")
    again = await one.follow(there.id, after=cursor)  # which still works, and forwards it
    assert again.snapshot["mode"] == "resumed"
    while await again.state() != "idle":
        await again.client.event()
    assert (await again.texts())[-1] == ("assistant", ["all done"])
    (one.cwd / "go").write_text("\n")
    await longer.until("evicted")
