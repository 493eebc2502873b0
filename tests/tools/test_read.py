import base64
import os
import threading
import tracemalloc

import pytest

from zotd.tools import read
from zotd.wire.content import Image, Text

MIB = 1024 * 1024
PNG = b"\x89PNG\r\n\x1a\n" + bytes(100)


async def test_a_short_file_is_given_as_it_is(call, cwd):
    (cwd / "a.txt").write_bytes(b"one\r\ntwo\n")
    assert await call("read", {"path": "a.txt"}) == ("one\r\ntwo\n", False)


async def test_a_path_may_be_absolute_or_in_the_home_directory(call, tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "a.txt").write_text("at home")
    assert (await call("read", {"path": "~/a.txt"}))[0] == "at home"
    assert (await call("read", {"path": str(tmp_path / "home" / "a.txt")}))[0] == "at home"


async def test_an_empty_file_is_said_to_be_empty(call, cwd):
    (cwd / "a.txt").touch()
    assert await call("read", {"path": "a.txt"}) == ("[a.txt is empty]", False)


async def test_offset_and_limit_choose_lines(call, cwd):
    (cwd / "a.txt").write_text("".join(f"line {i}\n" for i in range(1, 11)))
    text, _ = await call("read", {"path": "a.txt", "offset": 4, "limit": 2})
    assert text == "line 4\nline 5\n\n[36 bytes are left; continue with offset=6]"
    text, _ = await call("read", {"path": "a.txt", "offset": 10})
    assert text == "line 10\n"


@pytest.mark.parametrize("content", ["1\n2\n3\n", "1\n2\n3"])
async def test_an_offset_behind_the_end_is_refused_with_the_number_of_lines(call, cwd, content):
    (cwd / "a.txt").write_text(content)
    assert (await call("read", {"path": "a.txt", "offset": 3}))[0].startswith("3")
    for offset in (4, 100):
        text, is_error = await call("read", {"path": "a.txt", "offset": offset})
        assert is_error
        assert text == f"a.txt has 3 lines; offset {offset} is past the last one"


async def test_following_the_offsets_gives_the_whole_file(call, cwd):
    content = "".join(f"{i} {'x' * (i % 90)}\n" for i in range(20_000))
    (cwd / "a.txt").write_text(content)
    got, offset = "", 1
    while offset:
        text, is_error = await call("read", {"path": "a.txt", "offset": offset})
        assert not is_error
        shown, found, note = text.rpartition("\n[")
        got += shown if found else text
        assert len(shown) <= 50 * 1024
        assert shown.count("\n") <= 2_000
        offset = int(note.rpartition("offset=")[2].rstrip("]")) if found else 0
    assert got == content


async def test_a_call_gives_at_most_two_thousand_lines_whatever_the_limit(call, cwd):
    (cwd / "a.txt").write_text("x\n" * 5_000)
    text, _ = await call("read", {"path": "a.txt", "limit": 4_000})
    assert text.count("x\n") == 2_000
    assert "[6,000 bytes are left; continue with offset=2001]" in text


async def test_a_line_longer_than_a_result_is_cut_and_the_next_line_can_be_read(call, cwd):
    (cwd / "a.txt").write_text("é" * 100_000 + "\nnext\n")
    text, _ = await call("read", {"path": "a.txt"})
    shown, _, note = text.rpartition("\n")
    assert shown == "é" * (50 * 512)
    assert note == (
        "[line 1 has 148,801 bytes more; look at them with cut -c in bash; continue with offset=2 for the 5 bytes behind it]"
    )
    assert (await call("read", {"path": "a.txt", "offset": 2}))[0] == "next\n"


async def test_a_huge_file_is_read_in_constant_memory(call, cwd):
    with (cwd / "huge.txt").open("wb") as file:
        file.write(b"text " * 2_000 + b"\n")  # behind the bytes that tell text from binary
        file.truncate(200 * MIB)  # a hole: one line of 200 MB
        file.seek(0, os.SEEK_END)
        file.write(b"\nthe end\n")
    tracemalloc.start()
    huge_line, _ = await call("read", {"path": "huge.txt", "offset": 2})
    end, _ = await call("read", {"path": "huge.txt", "offset": 3})
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert end == "the end\n"
    assert "continue with offset=3 for the 8 bytes behind it" in huge_line
    assert peak < 2 * MIB


async def test_a_file_without_a_size_is_read(call):
    text, is_error = await call("read", {"path": "/proc/self/status"})
    assert not is_error
    assert "Pid:" in text


async def test_bytes_that_are_no_utf8_are_replaced(call, cwd):
    (cwd / "a.txt").write_bytes(b"caf\xe9\n")
    assert (await call("read", {"path": "a.txt"}))[0] == "caf\N{REPLACEMENT CHARACTER}\n"


async def test_a_byte_order_mark_is_not_shown(call, cwd):
    (cwd / "a.txt").write_bytes(b"\xef\xbb\xbfone\n")
    assert (await call("read", {"path": "a.txt"}))[0] == "one\n"


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0 rest", "image/jpeg"),
        (b"GIF89a rest", "image/gif"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
    ],
)
async def test_an_image_is_known_by_its_bytes(context, cwd, start, kind):
    (cwd / "picture.txt").write_bytes(start)
    outcome = await read.TOOL.run({"path": "picture.txt"}, context())
    assert outcome.content == [
        Text(f"picture.txt: {kind}, {len(start)} bytes"),
        Image(kind, len(start), base64.b64encode(start).decode()),
    ]
    assert not outcome.is_error


async def test_an_image_that_is_too_large_is_refused(call, cwd):
    (cwd / "big.png").write_bytes(PNG + bytes(4 * MIB))
    text, is_error = await call("read", {"path": "big.png"})
    assert is_error
    assert text.startswith("big.png is an image of more than 3,932,160 bytes")


async def test_a_binary_file_is_refused(call, cwd):
    (cwd / "a.bin").write_bytes(b"text and then\0")
    text, is_error = await call("read", {"path": "a.bin"})
    assert is_error
    assert text.startswith("a.bin is a binary file")


@pytest.mark.parametrize("kind", ["folder", "fifo", "device", "loop", "missing", "nul", "empty"])
async def test_an_irregular_file_is_refused_at_once(call, cwd, kind):
    (cwd / "folder").mkdir()
    os.mkfifo(cwd / "fifo")
    (cwd / "device").symlink_to("/dev/zero")
    (cwd / "loop").symlink_to("loop")
    name = {"nul": "a\0b", "empty": ""}.get(kind, kind)
    expected = {
        "folder": "is a directory",
        "fifo": "is not a regular file",
        "device": "is not a regular file",
        "loop": f"cannot read {cwd}/loop: too many levels of symbolic links",
        "missing": f"cannot read {cwd}/missing: no such file or directory",
        "nul": "contains a NUL",
        "empty": "the path is empty",
    }
    text, is_error = await call("read", {"path": name})
    assert is_error
    assert expected[kind] in text
    assert threading.active_count() < 50  # no thread hangs in an open
