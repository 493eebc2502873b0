"""File tools within the bounds of a jail: what counts is what was opened, not what was named."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest


@dataclass
class Bounds:
    """A jail of file tools; `before` is done whenever it is asked, as a command of the model could do it."""

    inside: Path
    hidden: Path
    before: Callable[[], None] | None = None
    asked: list[str] = field(default_factory=list)

    def _ask(self, path):
        self.asked.append(path)
        if self.before:
            change, self.before = self.before, None
            change()

    def may_read(self, path):
        self._ask(path)
        return not Path(path).is_relative_to(self.hidden)

    def may_write(self, path):
        self._ask(path)
        return Path(path).is_relative_to(self.inside)


@pytest.fixture
def bounds(cwd, tmp_path):
    hidden = tmp_path / "keys"
    hidden.mkdir()
    (hidden / "id").write_text("secret")
    return Bounds(cwd.resolve(), hidden.resolve())


async def test_a_write_outside_is_refused_and_makes_nothing(call, tmp_path, bounds):
    for path in ("../out.txt", "../new/deep/out.txt"):
        text, is_error = await call("write", {"path": path, "content": "x"}, jail=bounds)
        assert is_error
        assert "outside of what the jail of this session lets calls change" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["keys", "work"]


async def test_a_directory_that_is_replaced_by_a_link_after_the_check_gets_nothing_out(call, cwd, tmp_path, bounds):
    (cwd / "way").mkdir()

    def swap():
        (cwd / "way").rename(cwd / "before")
        (cwd / "way").symlink_to(tmp_path / "keys")

    bounds.before = swap
    await call("write", {"path": "way/id", "content": "changed"}, jail=bounds)
    assert ((tmp_path / "keys/id").read_text(), (cwd / "before/id").read_text()) == ("secret", "changed")


async def test_a_missing_directory_that_appears_as_a_link_is_not_followed(call, cwd, tmp_path, bounds):
    bounds.before = lambda: (cwd / "way").symlink_to(tmp_path / "keys")
    _, is_error = await call("write", {"path": "way/new", "content": "x"}, jail=bounds)
    assert is_error
    assert [path.name for path in (tmp_path / "keys").iterdir()] == ["id"]


async def test_a_file_that_is_replaced_by_a_link_after_the_check_is_replaced_itself(call, cwd, tmp_path, bounds):
    bounds.before = lambda: (cwd / "a").symlink_to(tmp_path / "keys/id")
    await call("write", {"path": "a", "content": "changed"}, jail=bounds)
    assert (tmp_path / "keys/id").read_text() == "secret"


@pytest.mark.parametrize(
    ("tool", "others"),
    [("read", {}), ("edit", {"edits": [{"oldText": "secret", "newText": "x"}]}), ("grep", {"pattern": "."})],
)
async def test_a_link_to_something_hidden_shows_nothing(call, cwd, tmp_path, bounds, tool, others):
    (cwd / "link").symlink_to(tmp_path / "keys/id")
    text, is_error = await call(tool, {"path": "link", **others}, jail=bounds)
    assert is_error
    assert "is hidden by the jail of this session" in text
    assert bounds.asked == [str(tmp_path.resolve() / "keys/id")]


async def test_what_was_opened_and_then_removed_is_not_read(call, cwd, bounds):
    """Its place is not known any more."""
    (cwd / "a").write_text("x")
    fd = os.open(cwd / "a", os.O_RDONLY)
    (cwd / "a").unlink()
    text, is_error = await call("read", {"path": f"/proc/self/fd/{fd}"}, jail=bounds)
    os.close(fd)
    assert (is_error, "hidden by the jail" in text) == (True, True)
