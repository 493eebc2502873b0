"""The list of what a checkpoint does not contain, so that a restore never takes "not recorded" for "deleted".

Lists are stored beside the objects of the shadow repository, by their digest: consecutive checkpoints mostly share one.
"""

import hashlib
import os
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from zotd.checkpoints.errors import CheckpointError

FOLDER = "left-out"

DIGEST_BYTES = 16


class Why(StrEnum):
    """Why something is not recorded."""

    LARGE = "large"
    REPOSITORY = "repository"  # it has a git repository of its own, also as a submodule
    UNREADABLE = "unreadable"
    NAME = "name"  # git accepts no such path
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class Omission:
    """A path that is not recorded; one that ends with a slash is a directory with all that is in it."""

    path: str
    why: Why
    size: int = 0
    """In bytes; 0 for directories and for what is ignored."""


@dataclass(frozen=True)
class LeftOut:
    """All omissions of a checkpoint, sorted by path."""

    omissions: Sequence[Omission]

    def covers(self, path: str) -> bool:
        """Return whether the file at `path` is one of the omissions, or in one."""
        if path in self._paths:
            return True
        end = path.find("/")
        while end != -1:
            if path[: end + 1] in self._paths:
                return True
            end = path.find("/", end + 1)
        return False

    @cached_property
    def _paths(self) -> frozenset[str]:
        return frozenset(one.path for one in self.omissions)


def left_out(omissions: Iterable[Omission]) -> LeftOut:
    """Return the list of these omissions."""
    return LeftOut(sorted(omissions, key=lambda one: one.path))


def encoded(listed: LeftOut) -> bytes:
    """Return the list as bytes; empty for an empty list."""
    return b"\0".join(f"{one.why} {one.size} ".encode() + os.fsencode(one.path) for one in listed.omissions)


def decoded(content: bytes) -> LeftOut:
    """Return the list of these bytes; raises ValueError if they are none."""
    return LeftOut([_omission(line) for line in content.split(b"\0")] if content else ())


def write(folder: str, listed: LeftOut) -> str:
    """Store a list below the shadow repository `folder`, and return its digest; empty for an empty list."""
    if not listed.omissions:
        return ""
    content = encoded(listed)
    digest = hashlib.blake2b(content, digest_size=DIGEST_BYTES).hexdigest()
    place = os.path.join(folder, FOLDER, digest)
    if not os.path.exists(place):
        draft = f"{place}.draft"  # the caller holds the lock, so there is one writer
        with open(draft, "wb") as file:
            file.write(zlib.compress(content))
        os.replace(draft, place)
    return digest


def read(folder: str, digest: str) -> LeftOut:
    """Return the list with this digest. Raises CheckpointError if it is lost or damaged."""
    if not digest:
        return LeftOut(())
    try:
        with open(os.path.join(folder, FOLDER, digest), "rb") as file:
            content = zlib.decompress(file.read())
        return decoded(content)
    except (OSError, zlib.error, ValueError) as error:
        raise CheckpointError(
            f"the list of what the checkpoint left out is damaged ({error}); choose another checkpoint"
        ) from error


def keep(folder: str, digests: Iterable[str]) -> None:
    """Remove all lists but those with these digests."""
    kept = set(digests)
    for name in os.listdir(os.path.join(folder, FOLDER)):
        if name not in kept:
            os.unlink(os.path.join(folder, FOLDER, name))


def _omission(line: bytes) -> Omission:
    why, size, path = line.split(b" ", 2)
    return Omission(os.fsdecode(path), Why(why.decode()), int(size))
