"""A shadow repository stays small, and forgets its oldest checkpoints."""

import os
from pathlib import Path

import pytest

from zotd.checkpoints import packing


@pytest.fixture
def often(monkeypatch):
    monkeypatch.setattr(packing, "PACK_EVERY", 5)


def loose(place):
    return len(list(place.home.glob("checkpoints/*/objects/??/*")))


def fill(place, count):
    for number in range(count):
        place.write("a", "".join(f"line {line}\n" for line in range(50 + number)))
        place.record()


def test_objects_are_packed_from_time_to_time(place, often):
    fill(place, 4)
    place.checkpoints().tidy(1000)
    assert loose(place) == 4 * 3
    fill(place, 1)
    place.checkpoints().tidy(1000)
    assert loose(place) == 0
    assert len(place.checkpoints().all()) == 5


def test_the_oldest_checkpoints_are_forgotten_and_their_contents_with_them(place, often):
    place.write("big", os.urandom(900))
    place.record()
    first = place.checkpoints().find(1)
    (place.work / "big").unlink()
    fill(place, 9)
    place.checkpoints().tidy(5)
    assert [one.number for one in place.checkpoints().all()] == [10, 9, 8, 7, 6]
    shadow = place.checkpoints().repository
    names = shadow.run("cat-file", "--batch-all-objects", "--batch-check=%(objectname)").decode()
    assert first.tree not in names
    shadow.run("fsck", "--strict")
    fill(place, 1)
    assert place.checkpoints().all()[0].number == 11
    place.checkpoints().restore(place.checkpoints().find(6))
    assert (place.work / "a").read_text().count("\n") == 54


def test_lists_of_forgotten_checkpoints_are_removed(place, often):
    place.write(".gitignore", "*.log\n")
    place.write("x.log", "x")
    place.record()
    (place.work / "x.log").unlink()
    fill(place, 9)
    assert len(list(place.home.glob("checkpoints/*/left-out/*"))) == 1
    place.checkpoints().tidy(5)
    assert list(place.home.glob("checkpoints/*/left-out/*")) == []


def test_the_repository_is_private(place):
    place.write("a", "secret")
    place.record()
    folder = Path(place.checkpoints().repository.folder)
    assert folder.stat().st_mode & 0o077 == 0
    assert folder.parent.stat().st_mode & 0o077 == 0
