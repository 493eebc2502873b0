"""`api_key_command` with real programs."""

import asyncio
import os
import shlex

import pytest

from zotd import logs
from zotd.core.retry import Failure, ModelError
from zotd.store.key_command import OUTPUT_BYTES, KeyCommand

ENV = {"PATH": os.environ["PATH"]}


def command(script, **options):
    return KeyCommand(["sh", "-c", script, "sh", "{provider}"], env=ENV, **options)


async def test_the_key_is_the_output_of_the_program():
    keys = command('echo "key-of-$1"')
    assert await keys.key("anthropic") == "key-of-anthropic"
    assert await keys.key("openai") == "key-of-openai"
    assert "key-of-openai" not in logs.masked("key-of-openai")


async def test_the_program_runs_once_per_vendor_even_for_concurrent_requests(tmp_path):
    keys = command(f"echo run >> {shlex.quote(str(tmp_path / 'runs'))}; echo the-key")
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(keys.key("x")) for _ in range(3)]
    assert {task.result() for task in asked} == {"the-key"}
    assert (tmp_path / "runs").read_text() == "run\n"


async def test_empty_output_means_no_key():
    assert await command("echo").key("x") is None


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        ("echo secret-word; exit 3", "sh failed with exit code 3; run it in a terminal"),
        ("echo secret-word; echo more", "sh printed more than a key"),
        ("echo secret-word and more", "sh printed more than a key"),
        (r"printf 'secret-word\377'", "sh printed something that is not text"),
        (f"echo secret-word; head -c {OUTPUT_BYTES} /dev/zero; exec tail -f /dev/null", "sh printed more than 64 KiB"),
    ],
)
async def test_a_failure_is_one_sentence_without_the_output(script, sentence):
    with pytest.raises(ModelError) as caught:
        await command(script).key("x")
    assert caught.value.failure is Failure.NO_KEY
    assert caught.value.sentence.startswith(f"api_key_command: {sentence}")
    assert "secret-word" not in caught.value.sentence


async def test_a_program_that_takes_too_long_is_ended_with_its_group():
    with pytest.raises(ModelError, match=r"printed no key within 0\.05 s"):
        await command("tail -f /dev/null & exec tail -f /dev/null", timeout_s=0.05).key("x")


async def test_a_missing_program_is_named_in_the_error():
    with pytest.raises(ModelError, match="no-such-program cannot be started"):
        await KeyCommand(["no-such-program"], env=ENV).key("x")


async def test_a_failure_is_not_cached(tmp_path):
    keys = command(f"cat {shlex.quote(str(tmp_path / 'key'))}")
    with pytest.raises(ModelError):
        await keys.key("x")
    (tmp_path / "key").write_text("now-it-is-there")
    assert await keys.key("x") == "now-it-is-there"


async def test_cancelling_the_caller_ends_the_program():
    started = asyncio.Event()
    keys = command("tail -f /dev/null & exec tail -f /dev/null")
    async with asyncio.TaskGroup() as group:
        asked = group.create_task(keys.key("x"))
        asyncio.get_running_loop().call_soon(started.set)  # after the first step of the task, which starts the program
        await started.wait()
        asked.cancel()
    assert asked.cancelled()
