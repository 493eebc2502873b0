"""Commands and their responses, on the daemon's socket."""

import json

import pytest

from tests.api.handlers import HANDLERS
from zotd.wire import api
from zotd.wire.framing import CLIENT_LIMIT

MIB = 1024 * 1024

BAD = {
    "not JSON": b"ping",
    "half an object": b'{"type":"ping"',
    "a list": b'[{"type":"ping"}]',
    "a string": b'"ping"',
    "null": b"null",
    "two objects": b'{"type":"ping"}{"type":"ping"}',
    "too deep": b'{"type":"ping","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "NaN": b'{"type":"ping","x":NaN}',
    "Infinity": b'{"type":"ping","x":-Infinity}',
    "invalid UTF-8": b'{"type":"ping","x":"\xff"}',
    "a lone surrogate": b'{"type":"ping","x":"\\ud800"}',
    "UTF-16": '{"type":"ping"}'.encode("utf-16"),
    "a byte order mark": b'\xef\xbb\xbf{"type":"ping"}',
    "NUL": b"\x00",
    "a type that is no text": b'{"type":5}',
    "a float id": b'{"type":"ping","id":1.5}',
    "a list as id": b'{"type":"ping","id":[1]}',
    "an id beyond 2^53": b'{"type":"ping","id":9007199254740993}',
    "an id of 5,000 digits": b'{"type":"ping","id":' + b"9" * 5000 + b"}",
}


@pytest.mark.parametrize("line", BAD.values(), ids=BAD)
async def test_bad_input_is_answered_and_the_connection_continues(client, line):
    client.write(line + b"\n")
    response = await client.frame()
    assert (response["type"], response["command"], response["success"]) == ("response", "", False)
    assert response["code"] == "bad_request"
    assert "id" not in response
    assert await client.ask("ping") == {"pong": True}


@pytest.mark.parametrize("request_id", ["", "x" * 1000, "\u2028\x0b\x85", 0, -5, 2**53, -(2**53)])
async def test_the_id_of_a_request_is_returned_unchanged(client, request_id):
    client.write(json.dumps({"type": "ping", "id": request_id}, ensure_ascii=False).encode() + b"\n")
    response = await client.frame()
    assert (response["id"], response["success"]) == (request_id, True)


async def test_an_absent_id_and_null_are_equivalent(client):
    client.write(b'{"type":"ping"}\n{"type":"ping","id":null}\n')
    assert [await client.frame(), await client.frame()] == [
        {"type": "response", "command": "ping", "success": True, "data": {"pong": True}}
    ] * 2


async def test_empty_lines_are_ignored_and_a_carriage_return_is_allowed(client):
    client.write(b'\n\r\n\n{"type":"ping","id":1}\r\n')
    assert (await client.frame())["id"] == 1


@pytest.mark.parametrize("extra", [1, 2 * MIB])
async def test_a_line_over_16_mib_is_skipped_and_the_next_one_is_handled(client, extra):
    client.write(b'{"type":"ping","id":1,"x":"')
    client.write(b"x" * (CLIENT_LIMIT + extra) + b'"}\n' + b'{"type":"ping","id":2}\n')
    first, second = await client.frame(), await client.frame()
    assert (first["success"], first["command"], first["code"]) == (False, "", "too_large")
    assert (second["success"], second["id"]) == (True, 2)


async def test_a_line_of_exactly_16_mib_is_accepted(client):
    head, tail = b'{"type":"ping","id":1,"x":"', b'"}'
    client.write(head + b"x" * (CLIENT_LIMIT - len(head) - len(tail)) + tail + b"\n")
    assert (await client.frame())["id"] == 1


async def test_lines_do_not_depend_on_how_the_bytes_are_divided(client):
    for byte in b'{"type":"ping","id":"\xe2\x80\xa8"}\n{"type":"ping","id":2}\n':
        client.write(bytes([byte]))
    assert [(await client.frame())["id"], (await client.frame())["id"]] == ["\u2028", 2]


async def test_an_unknown_command_is_a_bad_request(client):
    response = await client.answer("make_coffee")
    assert (response["command"], response["error"], response["code"]) == (
        "make_coffee",
        "unknown command",
        "bad_request",
    )


def rows(*, handled):
    """Commands with a handler, or the others."""
    return [row for row in api.COMMANDS if (row.name in HANDLERS) is handled]


def fields(row):
    return row.params.__struct_fields__


async def test_a_command_without_a_handler_is_unsupported(connect):
    admin = await connect(role="admin")
    found = {row.name: await admin.refused(row.name) for row in rows(handled=False)}
    assert found == dict.fromkeys(found, "unsupported")


@pytest.mark.parametrize("role", list(api.Role), ids=lambda role: role.name.lower())
async def test_every_command_above_the_role_is_forbidden(connect, role):
    client = await connect(role=role.name.lower())
    found = {row.name: await client.refused(row.name) for row in api.COMMANDS if row.role > role}
    assert found == dict.fromkeys(found, "forbidden")
    assert await client.ask("ping") == {"pong": True}


async def test_a_session_command_reports_a_missing_or_unknown_session(connect):
    admin = await connect(role="admin")
    for row in rows(handled=True):
        if not issubclass(row.params, api.OfSession) or row.name == "get_models":
            continue
        given: dict[str, object] = {
            name: "off" for name in ("message", "model", "reasoning", "name", "input") if name in fields(row)
        }
        numbers = {"position": 1, "width": 80, "height": 24, "seq": 1}
        given |= {name: number for name, number in numbers.items() if name in fields(row)}
        given |= {"panel_id": "p"} if "panel_id" in fields(row) else {}
        given |= {name: "x" for name in ("approval", "args_digest", "decision", "mode") if name in fields(row)}
        given |= {name: "x" for name in ("kind", "text") if name in fields(row)}
        given |= {"key": "up"} if "key" in fields(row) else {}
        given |= {"focused": True} if "focused" in fields(row) else {}
        given |= {"command": "true"} if "command" in fields(row) else {}
        given |= {"servers": {}} if "servers" in fields(row) else {}
        given |= {"steps": [], "revision": 0} if "steps" in fields(row) else {}
        given |= {"job": "j1"} if "job" in fields(row) else {}
        given |= {"option": "x", "value": "x"} if "option" in fields(row) else {}
        given |= {"question": "x"} if "question" in fields(row) else {}
        given |= {"request": "x"} if "request" in fields(row) else {}
        response = await admin.answer(row.name, **given)
        assert (response.get("code"), "`session`" in response["error"]) == ("bad_request", True), response
        if row.name != "detach":  # no error for a client that is not attached
            response = await admin.answer(row.name, **given, session="s_nobody")
            assert (response.get("code"), "s_nobody" in response["error"]) == ("not_found", True), response


async def test_a_field_of_the_wrong_type_is_a_bad_request_that_names_the_command(connect):
    admin = await connect(role="admin")
    for row in rows(handled=True):
        if fields(row):
            response = await admin.answer(row.name, **{name: {"no": ["such"]} for name in fields(row)})
            assert (response.get("code"), response["error"].split(":")[0]) == ("bad_request", row.name), response
    assert await admin.ask("ping") == {"pong": True}


async def test_unknown_fields_of_a_command_are_ignored(client):
    assert await client.ask("ping", later="x", session=5) == {"pong": True}


async def test_incompatible_versions_report_which_one_is_older(client):
    response = await client.answer("hello", protocol=[7, 9])
    assert response["code"] == "unsupported"
    assert "7 to 9" in response["error"]
    assert (await client.ask("hello", protocol=[1, 9]))["protocol_version"] == 1


@pytest.mark.parametrize("field", ["name", "kind", "version"])
async def test_the_name_of_a_client_is_limited_because_others_display_it(client, field):
    assert await client.refused("hello", client={field: "x" * 201}) == "bad_request"
    assert (await client.ask("hello", client={field: "x" * 200}))["protocol_version"] == 1


async def test_hello_reports_the_limits_of_the_daemon(client):
    said = await client.ask("hello", client={"name": "me", "kind": "test", "version": "1"})
    assert said["role"] == "approve"
    assert said["limits"] == {"line_bytes": 16 * MIB, "frame_bytes": 4 * MIB, "queue": 64}
    assert {"version", "epoch", "connection", "pid", "features"} <= set(said)
    assert await client.refused("hello", role="emperor") == "bad_request"


async def test_a_connection_that_becomes_admin_is_logged(connect, caplog):
    caplog.set_level("INFO", logger="zotd")
    await connect(role="admin", client={"name": "zotctl"})
    assert any("zotctl" in record.getMessage() and "admin" in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"cwd": "."}, "absolute"),
        ({"cwd": "/no/such/directory"}, "not a directory"),
        ({"provider": "nobody"}, "unknown provider"),
        ({"model": "nobody", "provider": "anthropic"}, "ANTHROPIC_API_KEY"),
        ({"tools": ["read", "fly"], "no_ext": True}, "unknown tool"),
        ({"mode": "sometimes"}, "mode"),
        ({"reasoning": "extreme"}, "reasoning"),
    ],
)
async def test_a_session_that_could_not_run_is_not_created(client, place, fields, word):
    response = await client.answer(
        "session.create", **{"cwd": str(place.cwd), "provider": "ollama", "model": "m"} | fields
    )
    assert not response["success"]
    assert word in response["error"]
    assert await client.ask("session.list") == {"sessions": []}


async def test_every_handler_belongs_to_a_command_of_the_table():
    assert set(HANDLERS) <= set(api.BY_NAME)
