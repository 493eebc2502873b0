import asyncio

import pytest

from zotd.process.bounded_output import BoundedOutput

LIMIT = 1000


@pytest.fixture
async def written(tmp_path):
    """`await written(chunk, ...)`: an output of which these chunks are on disk, one after the other."""
    async with asyncio.TaskGroup() as tasks:
        found = []

        async def written(*chunks, path=tmp_path / "out" / "j1.txt"):
            output = BoundedOutput(path, LIMIT)
            found.append(output)
            tasks.create_task(output.write_until_end(lambda: None))
            for chunk in chunks:
                output.feed(chunk)
                await output.written()
            return output

        yield written
        for output in found:
            output.end()


def line(number):
    return b"%09d\n" % number


async def test_a_short_output_is_whole_and_private(written):
    output = await written(b"one\n", b"two\n")
    assert output.path.read_bytes() == b"one\ntwo\n"
    assert output.path.stat().st_mode & 0o777 == 0o600
    assert output.path.parent.stat().st_mode & 0o777 == 0o700
    part = output.read(4, 100)
    assert (part.start, part.data) == (4, b"two\n")


async def test_the_file_of_a_long_output_keeps_its_newest_part_and_never_exceeds_its_limit(written):
    output = await written(*map(line, range(1000)))
    assert output.total == 10_000
    kept = output.path.read_bytes()
    assert LIMIT // 2 <= len(kept) <= LIMIT
    assert kept.endswith(line(998) + line(999))


async def test_every_part_that_is_kept_is_found_by_its_offset(written):
    output = await written(*map(line, range(1000)))
    for number in (960, 980, 999):
        part = output.read(10 * number, 10)
        assert (part.start, part.data) == (10 * number, line(number))
    first = output.read(0, 10)
    assert first.start > 0
    assert first.data == line(first.start // 10)


async def test_an_output_that_an_earlier_process_has_left_is_read_by_the_same_offsets(written):
    output = await written(*map(line, range(1000)))
    again = BoundedOutput.at_rest(output.path, output.total)
    assert again.read(9_990, 10).data == line(999)
    await again.written()
    unknown = BoundedOutput.at_rest(output.path, 0)
    assert unknown.total == len(output.path.read_bytes())
    assert unknown.read(0, 10).start == 0


async def test_without_a_file_there_is_nothing(tmp_path):
    assert BoundedOutput.at_rest(tmp_path / "none", 0).read(0, 10).data == b""


async def test_what_cannot_be_kept_is_counted_and_said(written, tmp_path):
    (tmp_path / "file").write_text("")
    output = await written(b"one\n", b"two\n", path=tmp_path / "file" / "j1.txt")
    assert output.total == 8
    assert "not a directory" in output.failure
    assert output.read(0, 10).data == b""
