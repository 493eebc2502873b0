"""Language servers that crash, hang, flood or speak nonsense: an edit gets its result, and people one sentence."""

import pytest

from tests.diagnostics.conftest import fake
from zotd.diagnostics import client, connection
from zotd.exthost.jails import ConfinementError, ExtensionJails

ERROR = "x # error: no such name\n"

TOLD = "1 new error after this change:\na.txt:1:3: no such name (fake)"

OFF = "edits in {} are not checked by fake any more: the language server {}; it has failed 3 times (`zotctl diagnostics` lists the servers)"


FAILED = "[fake has not checked this change: it {}]"


async def fails(here, times=3):
    for number in range(times):
        assert await here.edit("a.txt", f"{number} {ERROR}") == ""


async def fails_three_times(here):
    """Make edits, of which the first three are told why they were not checked; return those sentences."""
    told = [await here.edit("a.txt", f"{number} {ERROR}") for number in range(5)]
    assert told[3:] == ["", ""]  # it is off
    return set(told[:3])


@pytest.mark.parametrize(
    ("trait", "reason"),
    [
        ("crashes", "has exited with code 1: fake: a missing library"),
        ("crashes-on-open", "was ended by SIGSEGV"),
        ("refuses", "has refused to begin: no licence"),
        ("floods", "has sent more than 64 MiB within 10 s"),
        ("malformed", "has sent more than 20 messages that are no JSON-RPC"),
        ("bad-header", "has sent something that is not a message with a header"),
    ],
)
async def test_a_server_that_fails_in_a_loop_is_off_and_people_are_told_once(world, trait, reason):
    async with world(fake(trait)) as here:
        assert await fails_three_times(here) == {FAILED.format(reason)}
        assert here.sentences == [OFF.format(here.work, reason)]
        one = await here.state()
        assert (one.state, one.pid) == ("off", None)
        assert one.reason == f"{reason}; it has failed 3 times"


@pytest.mark.parametrize(
    ("trait", "what"),
    [
        ("hangs", "INITIALIZE_S"),
        ("hangs-on-errors", "ANSWER_S"),
        ("deaf", "ANSWER_S"),
    ],
)
async def test_a_server_that_hangs_is_ended_and_off_after_three_times(world, monkeypatch, trait, what):
    monkeypatch.setattr(client, what, 0.3)
    async with world(fake(trait)) as here:
        (told,) = await fails_three_times(here)
        assert told.startswith("[fake has not checked this change: it has not answered `")
        assert (await here.state()).state == "off"
        assert len(here.sentences) == 1
        assert "has not answered" in here.sentences[0]


async def test_an_edit_does_not_wait_longer_than_the_setting_says(world):
    async with world(fake("hangs"), wait_s=0.05) as here:
        assert await here.edit("a.txt", ERROR) == (
            "[fake did not answer within 0.05 s; errors that are found later come with the next edit]"
        )


async def test_what_was_found_too_late_comes_with_the_next_edit(world):
    async with world(fake(), wait_s=0.001) as here:
        first = await here.edit("a.txt", ERROR)
        assert first.startswith("[fake did not answer")
        here.wait(60.0)
        told = await here.edit("b.txt", "fine\n")
        assert told == TOLD


async def test_a_server_that_crashed_once_is_started_with_the_next_edit(world):
    async with world(fake("crashes-once")) as here:
        assert await here.edit("a.txt", ERROR) == FAILED.format("was ended by SIGSEGV")
        assert (await here.state()).reason == "was ended by SIGSEGV"
        assert await here.edit("a.txt", f"y\n{ERROR}") == TOLD.replace(":1:", ":2:")
        assert here.sentences == []


@pytest.mark.parametrize("trait", ["stale", "future", "bad-errors", "busy", "huge", "asks"])
async def test_only_the_errors_of_the_text_as_it_is_are_told(world, trait):
    async with world(fake(trait)) as here:
        assert await here.edit("a.txt", "z # error: of before\n") != ""
        assert await here.edit("a.txt", ERROR) == TOLD
        assert await here.edit("a.txt", "fine\n") == ""
        assert here.sentences == []


async def test_a_server_that_says_nothing_if_nothing_is_new_goes_on(world, monkeypatch):
    monkeypatch.setattr(client, "PUBLISH_S", 0.2)
    async with world(fake("silent")) as here:
        assert await here.edit("a.txt", "fine\n") == ""
        assert await here.edit("a.txt", "fine again\n") == ""
        assert (await here.state()).state == "ready"
        monkeypatch.setattr(client, "PUBLISH_S", 60.0)
        assert await here.edit("a.txt", ERROR) == TOLD
        assert len(here.received("initialize")) == 1


async def test_processes_that_a_server_leaves_are_ended(world):
    async with world(fake("leaves-others")) as here:
        assert await here.edit("a.txt", ERROR) == TOLD  # `nothing_left_behind` looks for them


async def test_a_server_that_ignores_its_end_is_killed(world, monkeypatch):
    monkeypatch.setattr(connection, "LEAVE_S", 0.05)
    async with world(fake("stays")) as here:
        assert await here.edit("a.txt", ERROR) == TOLD


async def test_a_server_that_cannot_be_confined_is_not_started(world):
    class Broken(ExtensionJails):
        async def words(self, _):
            raise ConfinementError("cannot be confined as its `sandbox` asks: nothing works here")

    async with world(fake(), jails=Broken) as here:
        await fails(here)
        (sentence,) = here.sentences
        assert "fake any more: the language server cannot be started: cannot be confined as its" in sentence
        assert here.received() == []


async def test_a_server_is_not_started_with_all_rights(world):
    class Off(ExtensionJails):
        async def words(self, _):
            return []

    async with world(fake(), jails=Off) as here:
        await fails(here)
        assert "[sandbox] extensions is false" in (await here.state()).reason
        assert here.received() == []


async def test_a_program_that_cannot_be_executed_is_told(world, tmp_path):
    program = tmp_path / "server"
    program.write_bytes(b"\x7fELF nonsense")
    program.chmod(0o755)
    servers = fake()
    servers["fake"] = type(servers["fake"])(command=(str(program),), languages={".txt": "plaintext"})
    async with world(servers) as here:
        await fails_three_times(here)
        assert (await here.state()).state == "off"
        assert len(here.sentences) == 1
