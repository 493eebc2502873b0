"""Puts what programs use side by side in the memory of a template process, so that its forks copy fewer pages.

A fork copies each page of 4 KiB to which it writes, and it writes to each object that it uses: to its count of references,
and in code also to the caches of the interpreter. Objects lie where they were made, among others that no program uses: a
`zot rpc` made 100 KB of objects until its first answer, and copied 8 MiB of pages.
"""

import gc
import sys
import threading
from collections.abc import Callable, Iterable
from types import CodeType, FrameType, FunctionType

POOL_BYTES = 16 * 1024
"""Blocks of one size that Python's allocator takes from the system's memory at a time, also if it uses smaller ones."""

POOL_HEAD_BYTES = 48

SMALL_BYTES = range(48, 513, 16)
"""Sizes of blocks for which Python's allocator has pools, without the two smallest, which bytes do not fit in."""

TINY_BLOCKS = 10_000
"""Objects of 16 and of 32 bytes, about as many as there are holes. The numbers that `id` makes have 32 bytes, so that their
addresses do not tell when there are no more."""

LARGE_BYTES = tuple(int(64 * 1024 * 0.875**step) for step in range(36))
"""Sizes of blocks with which the holes of the C library's heap are filled, the largest first."""

BESIDE_BYTES = 64
"""What lies at most between two objects that are beside each other: the heads of the object and of the block."""

ENOUGH = 3
"""Objects beside each other that cannot be in a hole."""

MOST_BLOCKS = 100_000
"""For each size, should the allocator be another one."""

_filling: list[object] = []
"""What fills the holes. Never freed, as the module state of the programs is not."""


def run_code(run: Callable[[], None]) -> list[CodeType]:
    """Call `run` and return the code that it has run, also in threads that it has started, in the order of first use."""
    found: dict[int, CodeType] = {}  # by identity: code of two files may be equal

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            found.setdefault(id(frame.f_code), frame.f_code)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(found.values())


def gather(hot: Iterable[CodeType]) -> int:
    """Copy this code to one place, and have its functions run the copies; return the number of these functions.

    Functions within functions get their code when they are made, from the constants of the outer one, which is therefore
    copied too.
    """
    wanted = {id(code): code for code in hot}
    made: dict[int, tuple[CodeType, CodeType]] = {}
    """Code that moves and its copy, by the identity of the first. Most code does not, and has no entry that takes memory."""

    def copied(code: CodeType) -> CodeType:
        if id(code) in made:
            return made[id(code)][1]
        constants = code.co_consts
        if any(isinstance(one, CodeType) and copied(one) is not one for one in constants):
            constants = tuple(copied(one) if isinstance(one, CodeType) else one for one in constants)
        if constants is code.co_consts and id(code) not in wanted:
            return code
        made[id(code)] = code, code.replace(co_consts=constants)
        return made[id(code)][1]

    for code in wanted.values():
        copied(code)
    gc.unfreeze()  # frozen objects are not listed
    moved = 0
    # Not `isinstance`: it asks for an attribute, and there are objects that import a library then.
    for function in [one for one in gc.get_objects() if type(one) is FunctionType]:
        code = copied(function.__code__)
        if code is not function.__code__:
            function.__code__ = code
            moved += 1
    return moved


def fill_holes() -> None:
    """Take all free memory among the objects, so that new ones, of forks, are made side by side."""
    _filling.extend(object() for _ in range(TINY_BLOCKS))
    _filling.extend(complex(0.0, number) for number in range(TINY_BLOCKS))
    for size in SMALL_BYTES:
        _fill_pools(size, lambda size=size: bytes(size - 33))  # type: ignore[misc]
    for size in LARGE_BYTES:
        _fill_heap(size)


def _fill_heap(size: int) -> None:
    """Make objects of this size until they come from the end of the heap, where they are made one beside the other.

    Larger holes are filled already, so that none has room for so many.
    """
    in_a_row = address = 0
    for _ in range(MOST_BLOCKS):
        block = bytes(size)
        _filling.append(block)
        in_a_row = in_a_row + 1 if 0 < id(block) - address < size + BESIDE_BYTES else 0
        address = id(block)
        if in_a_row >= ENOUGH:
            return


def _fill_pools(size: int, make: Callable[[], object]) -> None:
    """Make objects of this size until they have filled a pool that was empty."""
    in_a_row = address = 0
    for _ in range(MOST_BLOCKS):
        block = make()
        _filling.append(block)
        in_a_row = in_a_row + 1 if id(block) == address + size else 0
        address = id(block)
        if in_a_row >= (POOL_BYTES - POOL_HEAD_BYTES) // size - 1:
            return
