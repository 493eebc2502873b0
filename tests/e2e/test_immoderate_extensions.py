"""Extensions that say more, longer or deeper things than anybody can use: it costs them, and not the session."""

import json

import pytest

from zotd.testing.script import CallPart, ScriptedReply, TextPart, calls, text
from zotd.wire.framing import SERVER_LIMIT

HEAD = r"""
import json, sys

def say(**frame):
    print(json.dumps(frame), flush=True)

def say_bytes(before, data, after):
    sys.stdout.buffer.write(before.encode() + data + after.encode() + b"\n")
    sys.stdout.flush()

def nested(depth):
    return '{"a":' * depth + "1" + "}" * depth

say(type="hello", name="much")
say(type="subscribe", intercept=["tool_call", "assistant_message"])
say(type="register_tool", name="ask", description="Asks.", schema={"type": "object"})
for name in ("show", "other"):
    say(type="register_command", name=name)
say(type="ready")
for line in sys.stdin:
    frame = json.loads(line)
    kind, key = frame["type"], frame.get("id")
"""
"""What comes behind it may answer; what it does not answer is answered with nothing."""

TAIL = r"""
    elif kind == "command_invoked":
        say(type="command_response", id=key, action="noop")
    elif kind == "tool_call":
        say(type="tool_result", id=key, content=[{"type": "text", "text": "asked"}])
    elif kind == "event_intercept":
        say(type="event_intercept_response", id=key)
"""

ASKED = calls(CallPart("ask")), text("done")


@pytest.fixture
def much(shop):
    """`much(condition, statement)`: an extension that does this when a frame has come that is so."""

    def much(condition, *statements):
        body = "\n".join([f"    if {condition}:", *(f"        {one}" for one in statements)])
        (shop.write("much", "") / "main.py").write_text(HEAD + body + TAIL)

    return much


def longest(*clients):
    return max(len(json.dumps(frame, ensure_ascii=False).encode()) for client in clients for frame in client.seen)


# --- what it shows --------------------------------------------------------------------------------------------

PANELS = """[say(type="open_panel", panel={"id": str(n), "lines": ["\\x1b" * 500] * 500}) for n in range(4)]"""
PANEL_IDS = """[say(type="open_panel", panel={"id": str(n) * 1_000_000}) for n in range(5)]"""
KEYS = """[say(type="set_status", key=str(n) * 1_000_000, text="x") for n in range(5)]"""
NOTES = """[say(type="notify", message=f"{n}" + "\\x1b" * 9_000) for n in range(60)]"""


@pytest.mark.parametrize("shown", [PANELS, PANEL_IDS, KEYS, NOTES])
async def test_whatever_it_shows_a_client_can_attach(much, shop, model, shown):
    much("kind == 'command_invoked' and frame['name'] == 'show'", shown)
    talk = await shop.open(await model(text("-")))
    await talk.ask("run_command", name="other")
    talk.send("run_command", name="show")
    # `show` is not answered; what it has shown is there when the next command is.
    await talk.ask("run_command", name="other")
    other = await shop.house.follow(talk.id)
    assert longest(other.client, talk.client) <= SERVER_LIMIT
    assert other.snapshot["status"] == []


async def test_a_snapshot_without_room_for_a_message_leaves_it_to_the_history(much, shop, model):
    much("kind == 'command_invoked'", NOTES, """say(type="command_response", id=key, action="noop")""")
    talk = await shop.open(await model(ScriptedReply([TextPart(["é" * 175_000] * 10)])))
    await talk.run()
    await talk.ask("run_command", name="show")
    other = await shop.house.follow(talk.id)
    assert longest(other.client) <= SERVER_LIMIT
    assert (len(other.snapshot["notes"]), other.snapshot["messages"], other.snapshot["has_more"]) == (50, [], True)
    page = await other.client.ask("session.history", session=talk.id, before=other.snapshot["seq"] + 1, limit=1)
    assert [message["role"] for message in page["messages"]] == ["assistant"]


@pytest.mark.parametrize("field", ["display", "insert", "error"])
async def test_an_answer_to_a_command_that_is_too_long_is_cut(much, shop, model, field):
    answer = '\'{"type":"command_response","id":"%s","action":"%s","%s":"\' % (key, "FIELD", "FIELD")'
    much("kind == 'command_invoked'", f"say_bytes({answer}, b'\\xff' * 4_000_000, '\"}}')".replace("FIELD", field))
    talk = await shop.open(await model(text("-")))
    response = await talk.client.answer("run_command", session=talk.id, name="show")
    assert "\ufffd" * 100 in str(response.get("data") or response.get("error"))
    assert longest(talk.client) < 1024 * 1024


@pytest.mark.parametrize(
    "content", ['b\'{"type":"text","text":"\' + b\'\\xff\' * 4_000_000 + b\'"}\'', "b'0,' * 2_000_000 + b'0'"]
)
async def test_a_result_that_no_frame_can_show_fails_its_call(much, shop, model, look, content):
    much(
        "kind == 'tool_call'",
        """say_bytes('{"type":"tool_result","id":"%s","content":[' % key, CONTENT, ']}')""".replace("CONTENT", content),
    )
    talk = await shop.open(await model(*ASKED))
    result = look.only(await talk.run(), "tool_result")[0]
    assert result["is_error"]
    assert "much answered with " in result["content"][0]["text"]
    assert longest(talk.client) < 1024 * 1024


@pytest.mark.parametrize(
    ("event", "answer"),
    [("tool_call", "block=True, reason='r' * 4_190_000"), ("assistant_message", "replace_text=LONG")],
)
async def test_what_a_guard_says_is_cut(much, shop, model, event, answer):
    answer = answer.replace("LONG", "'r' * 4_194_200")
    much(
        f"kind == 'event_intercept' and frame['event'] == '{event}'",
        f"say(type='event_intercept_response', id=key, {answer})",
    )
    talk = await shop.open(await model(*ASKED))
    await talk.run()
    other = await shop.house.follow(talk.id)
    assert longest(other.client, talk.client) < 1024 * 1024


async def test_a_piece_of_progress_is_cut(much, shop, model, look):
    much(
        "kind == 'tool_call'",
        """say_bytes('{"type":"tool_progress","id":"%s","text":"' % key, b'\\xff' * 4_000_000, '"}')""",
        """say(type="tool_result", id=key)""",
    )
    talk = await shop.open(await model(*ASKED))
    assert look.only(await talk.run(), "tool_progress")
    assert longest(talk.client) < 1024 * 1024


async def test_modules_that_fail_are_told_of_up_to_a_number(much, shop, model):
    much(
        "kind == 'command_invoked'",
        """[say(type="module_error", file=f"{n}.py", error="e" * 10_000) for n in range(300)]""",
        """say(type="command_response", id=key, action="noop")""",
    )
    talk = await shop.open(await model(text("-")))
    await talk.ask("run_command", name="show")
    findings = (await talk.client.ask("ext.doctor", session=talk.id))["findings"]
    assert len([one for one in findings if ".py: e" in one["text"]]) == 100
    assert longest(talk.client) < 1024 * 1024


# --- how deep it is -------------------------------------------------------------------------------------------


async def test_arguments_of_a_guard_that_are_too_deep_are_ignored(much, shop, model, look):
    answer = """'{"type":"event_intercept_response","id":"%s","modified_args":' % key, nested(65).encode(), '}'"""
    much("kind == 'event_intercept' and frame['event'] == 'tool_call'", f"say_bytes({answer})")
    talk = await shop.open(await model(*ASKED))
    events = await talk.run()
    assert look.only(events, "tool_result")[0]["content"][0]["text"] == "asked"
    assert look.only(events, "guard_note") == []


@pytest.mark.parametrize(
    ("tool", "args", "sentence"),
    [
        ("read", "nested(65)", "nested more than 64 deep"),
        ("re ad", "'{}'", "which cannot be"),
        ("", "'{}'", "without naming one"),
    ],
)
async def test_a_call_that_would_spoil_the_transcript_is_not_begun(much, shop, model, tool, args, sentence):
    head = '\'{"type":"command_response","id":"%s","action":"tool_prompt","tool_name":"TOOL","tool_args":\' % key'
    much("kind == 'command_invoked'", f"say_bytes({head}, {args}.encode(), '}}')".replace("TOOL", tool))
    talk = await shop.open(await model(text("fine")))
    response = await talk.client.answer("run_command", session=talk.id, name="show")
    assert sentence in str(response["error"])
    await talk.run()
    assert await talk.texts() == [("user", ["go"]), ("assistant", ["fine"])]


async def test_a_tool_whose_schema_is_too_deep_is_not_offered(much, shop, model):
    much(
        "kind == 'command_invoked'",
        """say_bytes('{"type":"register_tool","name":"deep","schema":', nested(65).encode(), '}')""",
        """say(type="command_response", id=key, action="noop")""",
    )
    server = await model(text("fine"))
    talk = await shop.open(server)
    await talk.ask("run_command", name="show")
    await talk.run()
    assert "deep" not in str(server.requests[0].body["tools"])
    assert "nested more than 64 deep" in str(await talk.client.ask("ext.doctor", session=talk.id))
