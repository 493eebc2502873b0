import asyncio
import os
import re
import signal
import tracemalloc

import pytest

KIB = 1024


class Shown:
    """Takes progress; waits for a part of it."""

    def __init__(self):
        self.pieces: list[str] = []
        self._changed = asyncio.Event()

    def __call__(self, text: str) -> None:
        self.pieces.append(text)
        self._changed.set()

    async def until(self, part: str) -> None:
        async with asyncio.timeout(60):
            while part not in "".join(self.pieces):
                self._changed.clear()
                await self._changed.wait()


@pytest.fixture
def shown():
    return Shown()


def body(text: str) -> str:
    """A result without the command and the line about its end."""
    return text.split("\n\n", 1)[1].rpartition("[")[0]


async def test_a_result_has_command_output_code_and_time(call):
    text, is_error = await call("bash", {"command": "echo one; echo two >&2; printf three"})
    assert re.fullmatch(r"\$ echo one; echo two >&2; printf three\n\none\ntwo\nthree\n\[exit 0\]  Took \d+\.\ds", text)
    assert not is_error


async def test_a_command_without_output_has_a_short_result(call):
    text, _ = await call("bash", {"command": "true"})
    assert text.startswith("$ true\n\n[exit 0]  Took ")


@pytest.mark.parametrize(("command", "ending"), [("exit 3", "[exit 3]"), ("kill -9 $$", "[exit 137]")])
async def test_a_failed_command_is_an_error_with_its_code(call, command, ending):
    text, is_error = await call("bash", {"command": command})
    assert ending in text
    assert is_error


async def test_a_command_runs_in_the_working_directory_with_exactly_the_environment(call, cwd):
    (cwd / "sub").mkdir()
    text, _ = await call("bash", {"command": "/usr/bin/env; pwd"}, cwd=str(cwd / "sub"), env={"ONE": "1"})
    lines = set(body(text).split())
    assert {line for line in lines if not line.startswith(("_=", "SHLVL=", "PWD="))} == {"ONE=1", f"{cwd}/sub"}


async def test_a_command_that_reads_input_gets_its_end(call):
    text, _ = await call("bash", {"command": "cat; echo over"})
    assert body(text) == "over\n"


async def test_a_system_without_bash_has_sh(call, tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "sh").symlink_to("/bin/sh")
    text, _ = await call("bash", {"command": 'echo "[$BASH_VERSION]"'}, env={"PATH": str(tools)})
    assert body(text) == "[]\n" or "[exit 0]" in text


async def test_the_shell_is_the_first_bash_on_the_path_that_can_be_run(call, tmp_path):
    places = [tmp_path / name for name in ("no", "directory", "text", "wrapper")]
    (places[1] / "bash").mkdir(parents=True)
    for place in places[2:]:
        place.mkdir()
        (place / "bash").write_text("#!/bin/sh\necho wrapped")
    (places[3] / "bash").chmod(0o755)
    path = os.pathsep.join([*map(str, places), os.environ["PATH"]])
    text, _ = await call("bash", {"command": "echo not wrapped"}, env={"PATH": path})
    assert body(text) == "wrapped\n"


async def test_output_is_shown_while_the_command_runs(call, cwd, shown):
    os.mkfifo(cwd / "go")
    async with asyncio.TaskGroup() as group:
        group.create_task(call("bash", {"command": "echo first; read line < go; echo $line"}, progress=shown))
        await shown.until("first\n")
        await asyncio.to_thread((cwd / "go").write_text, "second\n")
    assert "".join(shown.pieces) == "first\nsecond\n"


async def test_a_character_that_arrives_in_two_pieces_is_shown_whole(call, cwd, shown):
    os.mkfifo(cwd / "go")
    async with asyncio.TaskGroup() as group:
        command = r"printf 'a\303'; read line < go; printf '\251b'"
        group.create_task(call("bash", {"command": command}, progress=shown))
        await shown.until("a")
        await asyncio.to_thread((cwd / "go").write_text, "\n")
    assert "".join(shown.pieces) == "aéb"


async def test_output_that_is_not_utf8_is_replaced(call):
    text, _ = await call("bash", {"command": r"printf '\377ok'"})
    assert body(text) == "\N{REPLACEMENT CHARACTER}ok\n"


async def test_output_that_fits_is_not_cut_and_makes_no_file(call, tmp_path):
    text, _ = await call("bash", {"command": "seq 2000"})
    assert body(text) == "".join(f"{i}\n" for i in range(1, 2001))
    assert not (tmp_path / "out").exists()


async def test_of_too_many_lines_the_first_and_the_last_are_kept_and_all_are_in_a_file(call, tmp_path):
    text, _ = await call("bash", {"command": "seq 3000"})
    lines = body(text).splitlines()
    path = tmp_path / "out" / "c_1.txt"
    assert lines[:1000] == [str(i) for i in range(1, 1001)]
    assert lines[1001:] == [str(i) for i in range(2001, 3001)]
    assert f"3,000 lines is left out; all of it is in {path}" in lines[1000]
    assert path.read_text() == "".join(f"{i}\n" for i in range(1, 3001))
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


async def test_one_line_that_is_too_long_keeps_its_beginning_and_its_end(call):
    text, _ = await call("bash", {"command": "printf start; head -c 200000 /dev/zero | tr '\\0' x; printf end"})
    assert len(text) < 52 * KIB
    assert body(text).startswith("startxxx")
    assert body(text).endswith("xxxend\n")


async def test_a_flood_is_kept_whole_in_the_file_and_short_in_memory(call, tmp_path, shown):
    tracemalloc.start()
    text, _ = await call("bash", {"command": "yes 0123456789 | head -c 100000000; echo; echo end"}, progress=shown)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (tmp_path / "out" / "c_1.txt").stat().st_size == 100_000_005
    assert peak - sum(map(len, shown.pieces)) < 8 * KIB * KIB
    assert len(text) < 52 * KIB
    assert body(text).endswith("\nend\n")
    assert max(map(len, shown.pieces)) <= 16 * KIB


async def test_a_disk_that_is_slow_slows_the_command_down_and_costs_no_memory(call, tmp_path):
    size = 20_000_000
    (tmp_path / "out").mkdir()
    os.mkfifo(tmp_path / "out" / "c_1.txt")

    def read_slowly() -> None:
        left = size
        # Open for writing as well, so that the pipe has a reader however often the tool closes it and opens it again.
        fd = os.open(tmp_path / "out" / "c_1.txt", os.O_RDWR)
        while left:
            left -= len(os.read(fd, 4096))
        os.close(fd)

    tracemalloc.start()
    async with asyncio.TaskGroup() as group:
        group.create_task(asyncio.to_thread(read_slowly))
        await call("bash", {"command": f"head -c {size} /dev/zero"})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * KIB * KIB


async def test_a_file_that_cannot_be_written_does_not_cost_the_result(call, tmp_path):
    (tmp_path / "out").write_text("a file is in the way")
    text, is_error = await call("bash", {"command": "seq 100000"})
    assert "all of it could not be kept: " in text
    assert not is_error
    assert body(text).endswith("\n100000\n")


async def test_a_command_that_takes_too_long_is_ended_with_its_children(call, shown, ended):
    async with asyncio.TaskGroup() as group:
        task = group.create_task(call("bash", {"command": "sleep 100 & echo $!; wait", "timeout": 0.2}, progress=shown))
        await shown.until("\n")
    text, is_error = task.result()
    assert is_error
    assert "[timed out after 0.2 s" in text
    assert body(text) == "".join(shown.pieces)
    await ended(int(body(text)))


async def test_an_aborted_command_is_ended_with_its_stubborn_grandchildren(call, shown, ended):
    command = "trap '' TERM; (sleep 100; sleep 100) & echo $!; echo ready; sleep 100; sleep 100"
    async with asyncio.TaskGroup() as group:
        task = group.create_task(call("bash", {"command": command}, progress=shown))
        await shown.until("ready\n")
        task.cancel()
    assert task.cancelled()
    await ended(int("".join(shown.pieces).split()[0]))


async def test_an_aborted_flood_ends(call, shown):
    async with asyncio.TaskGroup() as group:
        task = group.create_task(call("bash", {"command": "yes"}, progress=shown))
        await shown.until("y\n")
        task.cancel()
    assert task.cancelled()


async def test_a_background_child_does_not_hold_the_call_and_survives_it(call, ended):
    async with asyncio.timeout(60):
        text, is_error = await call("bash", {"command": "sleep 100 & echo $!"})
    assert not is_error
    assert "[exit 0]" in text
    os.kill(int(body(text)), signal.SIGKILL)  # it was alive, or this would raise
    await ended(int(body(text)))


async def test_a_missing_working_directory_is_named(call, tmp_path):
    text, is_error = await call("bash", {"command": "true"}, cwd=str(tmp_path / "gone"))
    assert (text, is_error) == (
        f"the command could not be started in {tmp_path}/gone: no such file or directory",
        True,
    )


async def test_a_command_with_a_nul_is_refused(call):
    text, is_error = await call("bash", {"command": "echo \0"})
    assert is_error
    assert "NUL" in text


@pytest.mark.parametrize(
    "args", [{}, {"command": 1}, {"command": "true", "timeout": 0}, {"command": "true", "timeout": "soon"}]
)
async def test_bad_arguments_are_an_outcome_that_names_them(call, args):
    text, is_error = await call("bash", args)
    assert is_error
    assert text.startswith("bad arguments of bash: ")
    assert "command" in text or "timeout" in text


async def test_an_argument_that_is_null_counts_as_left_out(call):
    text, _ = await call("bash", {"command": "true", "timeout": None})
    assert "[exit 0]" in text


async def test_a_long_command_is_not_repeated_whole(call):
    text, _ = await call("bash", {"command": "true " + "x" * 10_000})
    assert len(text) < 3_000
