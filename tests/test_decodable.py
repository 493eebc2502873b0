"""Types that many threads use for the first time at once."""

import subprocess
import sys

SOURCE = """
import sys
from threading import Barrier, Thread
import msgspec
from zotd.wire.base import convert, decode

sys.setswitchinterval(1e-6)

def kinds():
    inner = msgspec.defstruct("Inner", [(f"field{number}", int | str | None, 0) for number in range(30)])
    fields = [(f"field{number}", dict[str, list[inner]] | None, None) for number in range(30)]
    return msgspec.defstruct("Outer", fields)

def use(kind, barrier):
    barrier.wait()
    convert({"field1": {"x": [{"field2": 1}]}}, kind)
    decode(b'{"field1": {"x": [{"field2": 1}]}}', kind)

for _ in range(40):
    kind, barrier = kinds(), Barrier(8)
    threads = [Thread(target=use, args=(kind, barrier)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


def test_many_threads_may_be_the_first_to_use_a_type():
    assert subprocess.run([sys.executable, "-c", SOURCE], check=False).returncode == 0
