"""Forked programs beside the same programs started by the interpreter: what they find, and how they end."""

import json
import sys
from pathlib import Path

import pytest

from tests.process.conftest import Told
from tests.template.conftest import ENV, KEPT
from zotd.process import start_service

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are made on Linux only")

STATE = """
import json, os, signal, sys, threading, locale
print(json.dumps({
    "argv": sys.argv, "orig_argv": sys.orig_argv, "path": sys.path, "executable": sys.executable,
    "file": __file__, "name": __name__, "package": __package__, "spec": __spec__ and [__spec__.name, __spec__.origin], "doc": __doc__,
    "globals": sorted(globals()), "env": dict(os.environ), "cwd": os.getcwd(),
    "stdin": [sys.stdin.encoding, sys.stdin.errors, sys.stdin.name, sys.stdin.mode, sys.stdin.line_buffering],
    "stdout": [sys.stdout.encoding, sys.stdout.errors, sys.stdout.name, sys.stdout.mode, sys.stdout.line_buffering],
    "stderr": [sys.stderr.encoding, sys.stderr.errors, sys.stderr.name, sys.stderr.mode, sys.stderr.line_buffering],
    "is original": [sys.stdin is sys.__stdin__, sys.stdout is sys.__stdout__, sys.stderr is sys.__stderr__],
    "fds": sorted(os.listdir("/proc/self/fd"))[:3], "fd count": len(os.listdir("/proc/self/fd")),
    "comm": open("/proc/self/comm").read(), "cmdline": open("/proc/self/cmdline").read(),
    "environ": sorted(open("/proc/self/environ").read().split("\\0")),
    "signals": [str(signal.getsignal(n)) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGCHLD)],
    "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
    "leads": os.getsid(0) == os.getpid() == os.getpgrp(), "parent": os.getppid(),
    "threads": threading.active_count(), "main": threading.current_thread() is threading.main_thread(),
    "locale": locale.setlocale(locale.LC_CTYPE), "preferred": locale.getpreferredencoding().lower(),
    "bytecode": sys.dont_write_bytecode, "prefix": sys.prefix,
}))
"""


async def both(rig, *words, **options):
    """What a program says when it is forked, and when the interpreter starts it."""
    forked, is_forked = await rig.run(*words, **options)
    assert is_forked
    cold = Told()
    argv = options.get("argv") or (sys.executable, *words)
    service = start_service(argv, cwd=str(rig.path), env=options.get("env", ENV), listener=cold)
    service.write(options.get("stdin", b""))
    service.end_input()
    await cold.until(lambda: cold.code is not None)
    return forked, cold


@pytest.mark.parametrize("env", [ENV, KEPT, {**KEPT, "LANG": "C"}, {**ENV, "PYTHONUNBUFFERED": "1"}])
async def test_a_forked_script_finds_the_state_of_a_cold_start(rig, env):
    forked, cold = await both(rig, rig.script(STATE), "a b", "", "ü", env=env)

    assert (forked.err, forked.code) == (cold.err, cold.code) == (b"", 0)
    assert json.loads(forked.out) == json.loads(cold.out)


async def test_a_forked_script_finds_the_state_of_a_cold_start_by_its_shebang(rig):
    script = rig.path / "program"
    script.write_text(f"#!/usr/bin/env {Path(sys.executable).name}\n{STATE}")
    script.chmod(0o700)
    env = {**ENV, "PATH": f"{Path(sys.executable).parent}:{ENV['PATH']}"}

    forked, cold = await both(rig, argv=(str(script), "x"), env=env)

    assert json.loads(forked.out) == json.loads(cold.out)


async def test_a_forked_directory_finds_the_state_of_a_cold_start(rig):
    (rig.path / "place").mkdir()
    rig.script(STATE, "place/__main__.py")

    forked, cold = await both(rig, "place", "x")

    assert cold.code == 0
    assert json.loads(forked.out) == json.loads(cold.out)


ENDS = {
    "returns": "print('out'); import sys; print('err', file=sys.stderr)",
    "exits": "raise SystemExit(7)",
    "exits with a word": "raise SystemExit('done')",
    "exits with 300": "raise SystemExit(300)",
    "fails": "def f():\n  1/0\nf()",
    "is no Python": "this is no Python",
    "is interrupted": "import os, signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(20)",
    "is killed": "import os, signal; os.kill(os.getpid(), 9)",
    "leaves a file open": "import sys; f = open(sys.argv[0] + '.txt', 'w'); f.write('text')",
    "has destructors": "import os\nclass A:\n  def __del__(self): os.write(1, b'gone')\na = A()",
    "has a thread": "import threading, time\nthreading.Thread(target=lambda: (time.sleep(.1), print('thread'))).start()",
    "has a daemon thread": (
        "import threading, time\ndef f():\n  while True: time.sleep(.0001); g()\ndef g(): pass\n"
        "threading.Thread(target=f, daemon=True).start(); time.sleep(.05); print('ends')"
    ),
    "registers an end": "import atexit; atexit.register(print, 'end'); print('begin')",
    "executes": "import os; os.execv('/bin/sh', ['sh', '-c', 'read x; echo got $x; exit 3'])",
    "reads bytes": "import sys; print(sys.stdin.buffer.read())",
    "reads lines": "import sys; print([line for line in sys.stdin])",
    "runs a loop": "import asyncio\nasync def f(): return 5\nprint(asyncio.run(f()))",
    "runs a command": "import subprocess; print(subprocess.run(['echo', 'x'], capture_output=True))",
    "closes stdout": "import sys; sys.stdout.close()",
    "has a full stdout": "import os, sys\nos.dup2(os.open('/dev/full', os.O_WRONLY), 1)\nprint('x')",
    "uses processes": (
        "import multiprocessing\ndef f(x): return x * 2\n"
        "if __name__ == '__main__':\n"
        "  for how in ('fork', 'spawn', 'forkserver'):\n"
        "    with multiprocessing.get_context(how).Pool(2) as pool: print(pool.map(f, [1, 2]))"
    ),
}


@pytest.mark.parametrize("source", ENDS.values(), ids=ENDS.keys())
async def test_a_forked_program_ends_as_a_cold_one(rig, source):
    forked, cold = await both(rig, rig.script(source), stdin=b"one\r\ntwo\n")

    assert (forked.out, forked.code) == (cold.out, cold.code)
    assert forked.err == cold.err
    written = rig.path / "main.py.txt"
    assert not written.exists() or written.read_text() == "text"
