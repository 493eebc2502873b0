"""A daemon that is stopped, or finds damage, while people are asked about calls."""

import asyncio
import signal
import sqlite3
import subprocess
from contextlib import closing

from zotd.testing import warm
from zotd.testing.script import CallPart, calls, text

WRITE = calls(CallPart("write", {"path": "a.txt", "content": "one\n"})), text("written")


async def asked(process, server, **options):
    """A session that needs no key and waits for a person's decision; and the question."""
    options = {"provider": "ollama", "model": "m", "base_url": server.openai_url, "secrets": None, "mode": "ask"}
    talk = await process.create("ollama", None, **options)
    await talk.ask("prompt", message="go")
    return talk, (await talk.until("approval_requested"))[-1]


async def test_a_question_survives_a_stop_and_its_answer_on_the_command_line_continues_the_run(process, model):
    talk, question = await asked(process, await model(*WRITE))
    process.restart(signal.SIGTERM)
    talk = await process.follow(talk.id, after={"epoch": talk.epoch, "seq": question["seq"]})
    assert [one["approval"] for one in talk.snapshot["approvals"]] == [question["approval"]]
    assert talk.snapshot["session"]["state"] == "waiting"
    assert not (process.cwd / "a.txt").exists()
    command = warm.command("zotctl", "approve", question["approval"])
    done = await asyncio.to_thread(
        subprocess.run, command, env=process.place.env, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    await talk.until("tool_result")
    await talk.until("done")
    assert (process.cwd / "a.txt").read_text() == "one\n"
    assert await talk.state() == "idle"


async def test_a_damaged_session_does_not_hide_the_questions_of_the_others(process, model):
    damaged, _ = await asked(process, await model(*WRITE))
    sound, question = await asked(process, await model(*WRITE))
    process.daemon.end()
    with closing(sqlite3.connect(process.place.home / "zot.db")) as connection, connection:
        connection.execute(
            "UPDATE records SET body = x'7b22' WHERE number = 2 AND session = (SELECT key FROM sessions WHERE id = ?)",
            (damaged.id,),
        )
    process.daemon.start()
    listed = (await (await process.connect()).ask("approval.list"))["approvals"]
    assert [(one["session"], one["approval"]) for one in listed] == [(sound.id, question["approval"])]
