"""The program that tells the user that somebody waits."""

import asyncio
import logging
import os

import pytest

from zotd.sessions.notifier import MAX_RUNNING, TEXT_CHARS, Notifier


@pytest.fixture
async def notifier():
    async with asyncio.TaskGroup() as tasks:

        def spawn(name, work):
            tasks.create_task(work, name=name)

        def make(*argv):
            return Notifier(lambda: argv or None, env={"PATH": os.environ["PATH"]}, spawn_task=spawn)

        yield make


async def test_the_sentence_reaches_the_program_as_one_word_of_one_line(notifier, tmp_path, ended_tasks):
    file = tmp_path / "said"
    notifier("sh", "-c", f'printf "%s|" "$@" > {file}', "sh", "zot: {text}", "x").tell("a 'b'; \n$(c)")
    await ended_tasks()
    assert file.read_text() == "zot: a 'b'; \\n$(c)|x|"


async def test_a_program_that_cannot_be_started_or_fails_is_logged(notifier, caplog, ended_tasks):
    notifier("no-such-program").tell("x")
    notifier("false").tell("x")
    await ended_tasks()
    assert {"no-such-program cannot be started" in text or "false failed" in text for text in caplog.messages} == {True}
    assert len(caplog.messages) == 2


async def test_only_so_many_run_at_once(notifier, caplog, ended_tasks, tmp_path):
    caplog.set_level(logging.WARNING)
    file = tmp_path / "said"
    full = notifier("sh", "-c", f"echo >> {file}")
    for _ in range(MAX_RUNNING + 1):
        full.tell("y" * (TEXT_CHARS + 1))
    assert [message.endswith(": " + "y" * TEXT_CHARS) for message in caplog.messages] == [True]
    await ended_tasks()
    full.tell("there is room again")
    await ended_tasks()
    assert file.read_text() == "\n" * (MAX_RUNNING + 1)


async def test_without_a_program_nothing_runs(notifier):
    notifier().tell("x")
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "notification"]


@pytest.fixture
def ended_tasks():
    """Waits until no notification is under way."""

    async def wait():
        running = [task for task in asyncio.all_tasks() if task.get_name() == "notification"]
        if running:
            await asyncio.wait(running, timeout=30)

    return wait
