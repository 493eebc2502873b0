"""The corpus of frames, against our readers, all doors of the daemon, and `zot rpc`."""

import json

import pytest

from tests.api.conftest import door as door  # noqa: PLC0414  (a fixture)
from tests.corpus.frames import DAEMON, FILES, missing, rows_of
from tests.embed.conftest import model as model  # noqa: PLC0414
from tests.embed.conftest import place as place  # noqa: PLC0414
from tests.embed.conftest import rpc as rpc  # noqa: PLC0414
from tests.embed.conftest import start_rpc as start_rpc  # noqa: PLC0414
from zotd.wire import ext
from zotd.wire.ext import Fault, Skipped

CARRIERS = {*DAEMON, "stdio"}

NEXT = {"type": "ping", "id": "next"}

every_file = pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)


def lines_for(carrier):
    return [row for row in rows_of("lines.jsonl") if carrier in row.carriers]


@every_file
def test_each_line_is_understood_as_its_row_says(file):
    assert [row.id for row in file.rows() if file.read(row.data) != read_again(file, row)] == []


@every_file
def test_what_was_understood_can_be_sent_again(file):
    assert [row.id for row in file.rows() if not has_all(read_again(file, row), row.means)] == []


def read_again(file, row):
    """What a row means, with the defaults of fields that are absent there, also of those that are newer than the row."""
    return file.read(json.dumps(row.means).encode())


def has_all(found, wanted):
    """Whether each member that is wanted is there, at any depth."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(key in found and has_all(found[key], wanted[key]) for key in wanted)
    if isinstance(wanted, list):
        is_list = isinstance(found, list) and len(found) == len(wanted)
        return is_list and all(map(has_all, found, wanted))
    return found == wanted


@every_file
def test_each_kind_and_each_field_has_a_row(file):
    assert [row.id for row in missing(file)] == [], "run: python -m tests.corpus.frames"


@pytest.mark.parametrize("name", [*(file.name for file in FILES), "lines.jsonl", "dialogues.jsonl"])
def test_rows_have_an_id_of_their_own_and_a_meaning(name):
    rows = rows_of(name)
    assert len({row.id for row in rows}) == len(rows) > 0
    assert all(row.meaning.endswith(".") for row in rows)
    assert {carrier for row in rows for carrier in row.carriers} <= CARRIERS
    assert all(b"\n" not in row.data for row in rows)


def test_what_an_extension_sends_is_no_frame_if_it_is_none_of_its_own():
    """A host skips it, and the extension goes on."""
    own = {file.name: {row.kind for row in file.rows()} for file in FILES}
    foreign = own["to_extension.jsonl"] - own["from_extension.jsonl"]
    for row in FILES[0].rows():
        frame = ext.read(row.data)
        fault = frame.fault if isinstance(frame, Skipped) else None
        assert fault == (Fault.UNKNOWN if row.kind in foreign else None)


async def check(send, frame, rows):
    """Send each row, followed by a ping that shows that the connection goes on."""
    for row in rows:
        send(row.data)
        send(json.dumps(NEXT).encode())
        for expected in row.answers:
            answer = await frame()
            assert {key: answer.get(key) for key in expected} == expected, row.id
            assert not set(row.absent) & answer.keys(), row.id
        answer = await frame()
        assert (answer["id"], answer["success"]) == ("next", True), row.id


async def test_the_unix_socket_answers_as_the_rows_say(door):
    client = await door.local()
    await check(lambda line: client.write(line + b"\n"), client.frame, lines_for("unix"))


async def test_the_websocket_answers_as_the_rows_say(door):
    web = await door.member(await door.token())
    await check(web.text, web.frame, lines_for("websocket"))


async def test_zot_rpc_answers_as_the_rows_say_and_knows_only_its_own_commands(rpc, model):
    process = await rpc("anthropic", await model())
    await check(lambda line: process.write(line + b"\n"), process.frame, lines_for("stdio"))
    other = [row for row in rows_of("commands.jsonl") if "stdio" not in row.carriers]
    for row in other:
        process.write(row.data + b"\n")
        answer = await process.frame()
        assert (answer["command"], answer["error"]) == (row.kind, "unknown command")
    assert await process.end() == (0, [], "")
