"""Files that are open in an editor, as the tools read and write them."""

import asyncio
from pathlib import Path

import pytest

from zotd.tools.shared import UNSAVED, editor
from zotd.tools.shared.editor import EDITOR_BYTES


class Buffers:
    """An editor with these files; `saved` is what it writes to the disk of what it is given."""

    def __init__(self, texts=(), saved=lambda text: text):
        self.texts = dict(texts)
        self.asked = []
        self.common = {}
        self._saved = saved

    def agreed(self, path, text):
        self.common[path] = text

    def has_agreed(self, path, text):
        return self.common.get(path) == text

    async def read(self, path):
        self.asked.append(("read", path))
        return self.texts.get(path)

    async def write(self, path, text):
        self.asked.append(("write", path))
        if path not in self.texts:
            return False
        self.texts[path] = text
        saved = self._saved(text)
        if saved is not None:
            await asyncio.to_thread(Path(path).write_text, saved, newline="")
        return True


@pytest.fixture
def file(cwd, monkeypatch):
    """A file; an editor has noticed all changes at once."""
    monkeypatch.setattr(editor, "NOTICE_S", 0)
    return cwd / "a.txt"


def edit(old, new):
    return {"path": "a.txt", "edits": [{"oldText": old, "newText": new}]}


@pytest.mark.parametrize(
    ("disk", "text"),
    [
        (b"one\r\ntwo\r\n", "one\ntwo\n"),
        (b"one\r\ntwo\n", "one\r\ntwo\r\n"),
        (b"\xef\xbb\xbfone\n", "one\n"),
        (b"one\n", "one\n"),
    ],
)
async def test_line_ends_and_a_byte_order_mark_are_no_unsaved_changes(call, file, disk, text):
    file.write_bytes(disk)
    buffers = Buffers({str(file): text})
    shown, _ = await call("read", {"path": "a.txt"}, editor=buffers)
    assert UNSAVED not in shown
    await call("edit", edit("one", "1"), editor=buffers)
    assert file.read_bytes() == disk.replace(b"one", b"1")


async def test_unsaved_changes_keep_the_line_ends_of_the_file(call, file):
    file.write_bytes(b"one\r\ntwo\r\n")
    await call("edit", edit("three", "3"), editor=Buffers({str(file): "one\nthree\n"}))
    assert file.read_bytes() == b"one\r\n3\r\n"


async def test_a_part_of_unsaved_text_is_read_like_a_part_of_a_file(call, file):
    file.write_text("x")
    text = "".join(f"line {number}\n" for number in range(1, 9))
    shown, _ = await call("read", {"path": "a.txt", "offset": 3, "limit": 2}, editor=Buffers({str(file): text}))
    assert shown == f"line 3\nline 4\n\n[28 bytes are left; continue with offset=5]\n[a.txt {UNSAVED}]"


async def test_an_editor_that_formats_what_it_saves_has_the_last_word(call, file):
    file.write_text("one\n")
    buffers = Buffers({str(file): "one\n"}, saved=lambda text: text.upper())
    _, is_error = await call("edit", edit("one", "two"), editor=buffers)
    assert (is_error, file.read_text()) == (False, "TWO\n")


@pytest.mark.parametrize("tool", ["edit", "write"])
async def test_an_editor_that_saves_nothing_has_it_saved(call, file, tool):
    file.write_text("one\n")
    buffers = Buffers({str(file): "one\n"}, saved=lambda _: None)
    args = edit("one", "two") if tool == "edit" else {"path": "a.txt", "content": "two\n"}
    await call(tool, args, editor=buffers)
    assert (file.read_text(), buffers.texts[str(file)]) == ("two\n", "two\n")


async def test_an_editor_is_not_asked_about_what_is_new_long_or_no_text(call, cwd):
    buffers = Buffers()
    (cwd / "binary").write_bytes(b"\0")
    (cwd / "latin").write_bytes(b"caf\xe9")
    (cwd / "long").write_text("x" * (EDITOR_BYTES + 1))
    for name in ("binary", "latin", "long", "missing", "."):
        await call("read", {"path": name}, editor=buffers)
    await call("write", {"path": "new/a.txt", "content": "new"}, editor=buffers)
    assert buffers.asked == []
    assert (cwd / "new/a.txt").read_text() == "new"


async def test_an_editor_is_given_real_paths_only(call, cwd, file):
    file.write_text("one\n")
    (cwd / "link").symlink_to("a.txt")
    buffers = Buffers({str(file): "one\n"})
    await call("edit", {**edit("one", "two"), "path": "link"}, editor=buffers)
    assert {path for _, path in buffers.asked} == {str(file)}
    assert (cwd / "link").is_symlink()


@pytest.mark.parametrize("name", ["read", "edit", "write"])
async def test_an_editor_is_not_asked_about_what_a_jail_closes(call, cwd, file, name):
    class ClosedJail:
        def may_read(self, _):
            return name != "read"

        def may_write(self, _):
            return False

    file.write_text("one\n")
    buffers = Buffers({str(file): "one\n"})
    args = {"read": {"path": "a.txt"}, "edit": edit("one", "two"), "write": {"path": "a.txt", "content": "two"}}[name]
    _, is_error = await call(name, args, editor=buffers, jail=ClosedJail())
    assert (is_error, file.read_text()) == (True, "one\n")
    assert "write" not in [action for action, _ in buffers.asked]


@pytest.mark.parametrize("first", ["read", "edit"])
async def test_what_a_command_has_changed_counts_if_the_editor_has_not_noticed(call, file, first):
    file.write_text("one\n")
    buffers = Buffers({str(file): "one\n"})
    await call(first, edit("one", "1") if first == "edit" else {"path": "a.txt"}, editor=buffers)
    file.write_text("by a command\n")
    shown, _ = await call("read", {"path": "a.txt"}, editor=buffers)
    assert shown == "by a command\n"
    await call("edit", edit("by a", "by the"), editor=buffers)
    assert file.read_text() == buffers.texts[str(file)] == "by the command\n"
    buffers.texts[str(file)] += "typed\n"
    shown, _ = await call("read", {"path": "a.txt"}, editor=buffers)
    assert "typed" in shown


async def test_an_editor_has_time_to_notice_a_change(call, file, monkeypatch):
    class Slow(Buffers):
        async def read(self, path):
            text = await super().read(path)
            self.texts[path] = Path(path).read_text()  # noqa: ASYNC240
            return text

    monkeypatch.setattr(editor, "NOTICE_S", 0.2)
    file.write_text("new\n")
    buffers = Slow({str(file): "old\n"})
    assert (await call("read", {"path": "a.txt"}, editor=buffers))[0] == "new\n"
    assert len(buffers.asked) == 2
