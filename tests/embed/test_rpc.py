"""`zot rpc` as a subprocess: its pipes and its exit code."""

import asyncio
import os
import signal
import subprocess

import pytest

from zotd.testing import warm
from zotd.testing.script import CallPart, Hang, ScriptedReply, TextPart, ThinkingPart, calls, text

TOKEN = "a-token-of-this-process"


def types(frames):
    return [frame["type"] for frame in frames]


async def test_a_run_has_only_the_events_of_the_stdio_protocol(rpc, model, vendor, place):
    (place.cwd / "a").write_text("walrus")
    program = await rpc(vendor, await model(calls(CallPart("read", {"path": "a"})), text("ok")))
    program.send("prompt", message="go", id="p")
    frames = await program.until("done")
    assert frames[0] == {"type": "response", "id": "p", "command": "prompt", "success": True, "data": {"started": True}}
    assert types(frames[1:]) == [
        *("user_message", "turn_start", "assistant_start", "tool_use_start", "tool_use_args", "tool_use_args"),
        *("tool_use_end", "usage", "assistant_message", "tool_call", "turn_end", "tool_result"),
        *("turn_start", "assistant_start", "text_delta", "usage", "assistant_message", "turn_end", "done"),
    ]
    assert not {"seq", "session", "run"} & {field for frame in frames for field in frame}
    assert set(frames[1]) == {"type", "content", "time"}
    assert frames[-1] == {"type": "done"}
    assert await program.end() == (0, [], "")
    assert not list(place.home.glob("zot.db*"))


async def test_a_plan_is_sent_as_the_call_of_the_model_and_not_as_an_event(rpc, model, vendor):
    steps = [{"text": "look", "state": "active"}]
    program = await rpc(vendor, await model(calls(CallPart("plan", {"steps": steps})), text("ok")))
    program.send("prompt", message="go")
    events = await program.until("done")
    assert [one["args"]["steps"] for one in events if one["type"] == "tool_call"] == [steps]
    assert "plan" not in {one["type"] for one in events}


async def test_thinking_is_not_sent_on_stdio(rpc, model, vendor):
    program = await rpc(vendor, await model(ScriptedReply([ThinkingPart(["Hm, ", "walrus?"]), TextPart(["yes"])])))
    program.send("prompt", message="go")
    frames = await program.until("done")
    assert "text_delta" in types(frames)
    assert "walrus" not in str(frames)


async def test_every_command_is_answered_as_documented(rpc, model, place):
    program = await rpc("openai", await model(text("hi"), text("Summary.")), "--model=gpt-4o")
    program.send("prompt", message="go")
    await program.until("done")
    asked = [
        {"type": "hello"},
        {"type": "ping"},
        {"type": "get_state"},
        {"type": "get_messages"},
        {"type": "set_model", "model": "gpt-5"},
        {"type": "set_reasoning", "reasoning": "low"},
        {"type": "get_models"},
        {"type": "abort"},
        {"type": "clear"},
    ]
    answers = {}
    for request in asked:
        program.send(request.pop("type"), **request)
        frame = await program.frame()
        assert frame["success"], frame
        answers[frame["command"]] = frame.get("data")
    assert (answers["hello"]["provider"], answers["hello"]["model"]) == ("openai", "gpt-4o")
    assert answers["hello"]["protocol_version"] == 1
    assert answers["ping"] == {"pong": True}
    state = answers["get_state"]
    assert (state["cwd"], state["message_count"], state["busy"]) == (str(place.cwd), 2, False)
    assert set(state) == {"provider", "model", "cwd", "message_count", "busy", "usage"}
    assert [message["role"] for message in answers["get_messages"]["messages"]] == ["user", "assistant"]
    assert answers["set_model"] == {"model": "gpt-5"}
    assert "gpt-4o" in [known["id"] for known in answers["get_models"]["models"]]
    assert [answers[name] for name in ("set_reasoning", "abort", "clear")] == [None] * 3
    program.send("compact")
    assert types(await program.until("done")) == ["response", "error", "done"]  # there is nothing to summarise
    code, rest, _ = await program.end()
    assert (code, rest) == (0, [])


async def test_a_prompt_is_answered_when_its_run_starts(rpc, model, vendor):
    program = await rpc(vendor, await model(text("a"), text("b"), text("c")))
    for number in range(3):
        program.send("prompt", message="go", id=number)
    frames = [frame for _ in range(3) for frame in await program.until("done")]
    assert [frame.get("id", "done") for frame in frames if frame["type"] in {"response", "done"}] == [
        *(0, "done", 1, "done", 2, "done")
    ]


async def test_work_in_progress_is_completed_after_the_end_of_input(rpc, model, vendor):
    program = await rpc(
        vendor, await model(calls(CallPart("bash", {"command": "echo a > x"})), text("ok"), text("last"))
    )
    program.send("prompt", message="go")
    program.write(b'{"type":"prompt","message":"no newline at the end"}')
    code, frames, err = await program.end()
    assert (code, err) == (0, "")
    assert types(frames).count("done") == 2
    assert frames[-1]["type"] == "done"


async def test_files_serve_as_well_as_pipes(model, place):
    server = await model(text("hi"))
    (place.folder / "in").write_text('{"type":"prompt","message":"go"}\n')
    flags = [f"--base-url={server.openai_url}", "--provider=openai", "--api-key=sk-x", f"--cwd={place.cwd}"]
    with (place.folder / "in").open() as given, (place.folder / "out").open("w") as out:
        code = await asyncio.to_thread(
            subprocess.call, warm.command("zotd.cli", "rpc", *flags), stdin=given, stdout=out, env=place.env
        )
    assert code == 0
    assert (place.folder / "out").read_text().endswith('{"type":"done"}\n')


# --- authentication ---------------------------------------------------------------------------------------------------


async def test_commands_work_with_the_token(rpc, model):
    program = await rpc("openai", await model(), ZOTCORE_RPC_TOKEN=TOKEN)
    program.send("hello", token=TOKEN, id=1)
    program.send("ping", id=2)
    assert [(await program.frame())["success"], (await program.frame())["id"]] == [True, 2]
    assert (await program.end())[0] == 0


@pytest.mark.parametrize(
    "line", [{"type": "hello", "token": "wrong"}, {"type": "hello"}, {"type": "prompt", "message": "go"}]
)
async def test_without_the_token_commands_are_refused_and_the_exit_code_is_1(rpc, model, line):
    server = await model(text("never"))
    program = await rpc("openai", server, ZOTCORE_RPC_TOKEN=TOKEN)
    command = line.pop("type")
    program.send(command, **line, id=7)
    program.send("hello", token=TOKEN, id=8)
    code, frames, _ = await program.end()
    assert code == 1
    assert [(frame["id"], frame["command"], frame["success"], frame["code"]) for frame in frames] == [
        (7, command, False, "unauthorized")
    ]
    assert server.requests == []


async def test_the_token_is_not_in_the_environment_of_tools(rpc, model):
    program = await rpc(
        "openai", await model(calls(CallPart("bash", {"command": "env"})), text("ok")), ZOTCORE_RPC_TOKEN=TOKEN
    )
    program.send("hello", token=TOKEN)
    program.send("prompt", message="go")
    assert TOKEN not in str(await program.until("done"))


async def test_a_key_comes_from_a_file_that_only_its_user_can_read(model, place):
    server, path = await model(text("hi")), place.folder / "key"
    path.write_text("sk-in-a-file\n")
    path.chmod(0o600)
    flags = [f"--base-url={server.openai_url}", "--provider=openai", f"--api-key-file={path}", f"--cwd={place.cwd}"]
    process = await asyncio.create_subprocess_exec(
        *warm.command("zotd.cli", "rpc", *flags), env=place.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    out, _ = await process.communicate(b'{"type":"prompt","message":"hi"}\n')
    assert process.returncode == 0, out
    assert {request.headers["Authorization"] for request in server.requests} == {"Bearer sk-in-a-file"}


async def test_a_missing_key_is_reported_in_one_line(rpc):
    code, frames, err = await (await rpc("anthropic", None)).end()
    assert (code, frames) == (1, [])
    assert err.startswith("zot: no key for Anthropic")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("flags", "code"), [(["--provider=nobody"], 1), (["--cwd=/no/such"], 1), (["--max-steps=x"], 2), (["--what"], 2)]
)
async def test_invalid_flags_are_refused(rpc, model, flags, code):
    ended = await (await rpc("openai", await model(), *flags)).end()
    assert ended[:2] == (code, [])
    assert "Traceback" not in ended[2]


async def test_bad_lines_are_answered_and_the_program_continues(rpc, model):
    program = await rpc("openai", await model())
    program.write(b'no\n[1]\n{"type":"session.list"}\n\n{"x":"' + b"x" * 17 * 1024 * 1024 + b'"}\n{"type":"ping"}\n')
    frames = [await program.frame() for _ in range(5)]
    assert [(frame["command"], frame.get("code")) for frame in frames] == [
        ("", "bad_request"),
        ("", "bad_request"),
        ("session.list", "bad_request"),
        ("", "too_large"),
        ("ping", None),
    ]


# --- abort and signals ------------------------------------------------------------------------------------------------


async def test_an_abort_works_while_the_output_is_not_read(rpc, model):
    """The output exceeds any pipe: a program that blocked on writing would never read the second request."""
    server = await model(ScriptedReply([TextPart(["x" * 10_000] * 150), Hang()], joined=True), text("after"))
    program = await rpc("openai", server)
    program.send("prompt", message="go")
    await server.received(1)
    program.send("abort")
    program.send("prompt", message="again")
    async with asyncio.timeout(60):
        await server.received(2)
    frames = [frame for _ in range(2) for frame in await program.until("done")]
    ends = [(frame["stop"], frame.get("error")) for frame in frames if frame["type"] == "turn_end"]
    assert ends == [("aborted", None), ("end_turn", None)]


async def test_frames_of_go_clients_are_accepted(rpc, model):
    """Null for an empty list, blank lines, and an empty token in the environment."""
    program = await rpc("openai", await model(text("hi")), ZOTCORE_RPC_TOKEN="")
    program.write(b'  \n\t\n{"type":"prompt","message":"go","images":null}\n')
    frames = await program.until("done")
    assert frames[0]["success"]
    assert await program.end() == (0, [], "")


async def test_pipelined_commands_are_answered_in_order_even_if_some_are_refused(rpc, model):
    program = await rpc("openai", await model())
    asked = ["get_state", "no-such-command", "ping", "set_model", "get_models", "ping", "hello", "clear"]
    program.write(b"".join(b'{"type":"%s","model":""}\n' % name.encode() for name in asked))
    answered = [await program.frame() for _ in asked]
    assert [frame["command"] for frame in answered] == asked
    assert [frame["command"] for frame in answered if not frame["success"]] == ["no-such-command", "set_model"]


async def test_a_prompt_and_its_abort_sent_together_after_done_both_take_effect(rpc, model, vendor):
    """The previous run is over for the client while its cancelled request is still being closed."""
    program = await rpc(vendor, await model(*[text("hi")] * 13))
    program.send("prompt", message="go")
    await program.until("done")
    stops = []
    for _ in range(12):
        program.write(b'{"type":"prompt","message":"again"}\n{"type":"abort"}\n')
        stops += [frame["stop"] for frame in await program.until("done") if frame["type"] == "turn_end"]
    assert set(stops) == {"aborted"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_aborts_the_run_and_starts_no_queued_one(rpc, model, place, number):
    os.mkfifo(place.cwd / "go")
    server = await model(calls(CallPart("bash", {"command": "echo started; cat go"})), *[text("never")] * 2)
    program = await rpc("openai", server)
    for _ in range(3):
        program.send("prompt", message="go")
    await program.until("tool_progress")
    program.process.send_signal(number)
    code, frames, err = await program.ended()
    assert code == 128 + number
    assert [frame["stop"] for frame in frames if frame["type"] == "turn_end"] == ["aborted"]
    assert len(server.requests) == 1
    assert "Traceback" not in err
