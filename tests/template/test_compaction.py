"""What programs use is put side by side, and works as before."""

import gc
import threading

from zotd.template import compaction

PAGE = 4096


def outer():
    def inner(number):
        return number + 1

    return inner


class Thing:
    def double(self, number):
        return 2 * number

    @staticmethod
    def half(number):
        return number // 2


def use():
    inner = outer()
    thread = threading.Thread(target=Thing().double, args=(1,))
    thread.start()
    thread.join()
    return inner(1), Thing.half(4)


def test_the_code_that_was_run_is_found_also_in_threads_and_within_functions():
    found = {code.co_qualname for code in compaction.run_code(use)}
    assert {"use", "outer", "outer.<locals>.inner", "Thing.double", "Thing.half"} <= found
    assert "PAGE" not in found


def test_functions_run_the_copies_of_their_code_and_do_the_same():
    functions = [use, outer, Thing.double, Thing.half]
    before = [function.__code__ for function in functions]
    gc.freeze()
    moved = compaction.gather([code for code in compaction.run_code(use) if code.co_filename == __file__])
    assert moved == len(functions)
    assert use() == (2, 2)
    for function, old in zip(functions, before, strict=True):
        assert function.__code__ is not old
        assert (function.__code__.co_code, function.__code__.co_firstlineno) == (old.co_code, old.co_firstlineno)
    inner = outer()
    assert inner.__code__ in outer.__code__.co_consts
    assert inner.__code__ is not before[1].co_consts[1]


def test_objects_that_are_made_after_the_holes_are_filled_lie_side_by_side():
    scattered = [bytes(100) for _ in range(20_000)]
    kept = scattered[::40]
    del scattered
    compaction.fill_holes()
    made = [bytes(100) for _ in range(200)]
    assert len({id(one) // PAGE for one in made}) < 20
    assert len(kept) == 500
