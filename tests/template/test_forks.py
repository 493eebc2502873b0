"""Programs that a daemon forks from its template process: which are, and what happens when one cannot be."""

import asyncio
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.template.conftest import ENV, LIMIT_S, rigged
from zotd.process import ChildLedger, OrphanReaper, orphans_adopted
from zotd.process.census import KERNEL
from zotd.tasks import contained
from zotd.template.forks import SWITCH, Forks

ROOT = Path(__file__).parents[2]
INTERPRETER = os.path.realpath(sys.executable)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks are made on Linux only")


async def test_forks_have_numbers_of_their_own(rig):
    script = rig.script("import random, uuid, secrets; print(random.random(), uuid.uuid4(), secrets.token_hex())")

    said = [(await rig.run(script))[0].out for _ in range(3)]

    assert len({word for line in said for word in line.split()}) == 9


@pytest.mark.parametrize(
    ("words", "env"),
    [
        (("-I", "main.py"), ENV),
        (("-c", "pass"), ENV),
        (("-m", "json.tool", "--help"), ENV),
        (("-X", "dev", "main.py"), ENV),
        (("main.py",), {**ENV, "PYTHONPATH": "/tmp"}),
        (("main.py",), {**ENV, "PYTHONHASHSEED": "7"}),
        (("main.py",), {**ENV, "LD_PRELOAD": ""}),
        (("main.py",), {**ENV, "LC_ALL": "xx_YY.ISO-8859-1"}),
        (("missing.py",), ENV),
    ],
)
async def test_a_program_starts_cold_if_a_fork_would_be_another_one(rig, words, env):
    rig.script("pass")

    _, is_forked = await rig.run(*words, env=env)

    assert not is_forked


async def test_a_program_starts_cold_if_it_would_import_another_module_of_its_own(rig):
    rig.script("print('own')", "json.py")

    told, is_forked = await rig.run(rig.script("import json"))

    assert (told.out, is_forked) == (b"own\n", False)


async def test_another_interpreter_starts_cold(rig, tmp_path):
    other = tmp_path / "bin"
    other.mkdir()
    (other / "python3").symlink_to(INTERPRETER)
    rig.script("import sys; print(sys.prefix)")

    told, is_forked = await rig.run(argv=(str(other / "python3"), "main.py"))

    assert not is_forked
    assert told.out.decode().strip() != sys.prefix


async def test_a_directory_that_is_gone_is_an_error_of_the_start(rig):
    with pytest.raises(FileNotFoundError):
        await rig.run(rig.script("pass"), cwd=rig.path / "gone")


async def test_an_environment_of_megabytes_reaches_a_fork(rig):
    env = {**ENV, **{f"V{number}": "x" * 100_000 for number in range(15)}}

    told, is_forked = await rig.run(rig.script("import os; print(len(os.environ['V14']))"), env=env)

    assert (told.out, is_forked) == (b"100000\n", True)


async def test_bytes_that_are_not_unicode_reach_a_fork(rig):
    env = {**ENV, "BYTES": os.fsdecode(b"caf\xe9")}

    told, is_forked = await rig.run(
        rig.script("import os, sys; print(os.environb[b'BYTES'], ascii(sys.argv[1]))"), os.fsdecode(b"\xff"), env=env
    )

    assert (told.out, is_forked) == (b"b'caf\\xe9' '\\udcff'\n", True)


@pytest.mark.parametrize(("count", "is_started"), [(3, False), (4, True)])
async def test_a_program_that_does_not_last_starts_a_template_for_many_programs_only(tmp_path, count, is_started):
    async with rigged(tmp_path, serves=False, lasts=False) as rig:
        script = rig.script("pass")

        async with asyncio.TaskGroup() as tasks:
            runs = [tasks.create_task(rig.run(script)) for _ in range(count)]

        assert (rig.forks.extensions.pid is not None) == is_started
    assert [run.result()[0].code for run in runs] == [0] * count


async def test_200_programs_are_forked_at_once(rig):
    script = rig.script("import os; print(os.getpid())")

    async with asyncio.TaskGroup() as tasks:
        runs = [tasks.create_task(rig.run(script)) for _ in range(200)]
    ran = [run.result() for run in runs]

    assert [told.code for told, _ in ran] == [0] * 200
    assert len({told.out for told, _ in ran}) == 200
    assert all(is_forked for _, is_forked in ran)


async def test_a_program_starts_cold_when_the_template_is_stopped_and_another_one_serves_later(rig):
    script, first = rig.script("print('ran')"), rig.forks.extensions.pid
    os.kill(first, signal.SIGSTOP)

    told, is_forked = await rig.run(script)
    assert (told.out, is_forked) == (b"ran\n", False)

    assert "did not answer for 1 s" in rig.forks.problem

    await rig.serving()
    _, is_forked = await rig.run(script)
    assert is_forked
    assert rig.forks.problem == ""
    assert rig.forks.extensions.pid != first


async def test_a_program_starts_cold_when_the_template_is_killed(rig):
    script, first = rig.script("print('ran')"), rig.forks.extensions.pid
    os.kill(first, signal.SIGKILL)

    told, _ = await rig.run(script)  # cold, or by the next template

    assert told.out == b"ran\n"
    await rig.serving()
    assert rig.forks.extensions.pid != first


async def test_a_program_that_was_given_up_does_not_run(rig):
    script = rig.script("open('ran', 'w')")
    pending = rig.forks.fork(
        (sys.executable, script), cwd=str(rig.path), env=ENV, is_bound=True, then=lambda _: pytest.fail("called")
    )
    await asyncio.sleep(0)  # it is sent
    pending.cancel()

    await rig.run(rig.script("pass", "other.py"))

    assert not (rig.path / "ran").exists()


async def test_a_program_starts_without_free_descriptors_for_the_template(rig):
    resource.prlimit(rig.forks.extensions.pid, resource.RLIMIT_NOFILE, (6, 4096))

    told, is_forked = await rig.run(rig.script("print('ran')"))

    assert (told.out, is_forked) == (b"ran\n", False)


async def test_what_a_fork_leaves_behind_is_found_by_its_mark(rig, tmp_path):
    async with asyncio.TaskGroup() as tasks:

        def spawn(name, work):
            contained(tasks, name, work)

        reaper = OrphanReaper(tmp_path / "home", spawn)
        claim = reaper.claim("a test")
        script = rig.script(
            "import os, sys, time\n"
            "if os.fork() == 0:\n  os.setsid()\n  print(os.getpid(), flush=True)\n  os.close(1)\n  time.sleep(1000)\n"
            "sys.stdin.read()"
        )
        told, service, is_forked = await rig.start(script, claim=claim)
        await told.until(lambda: told.out.endswith(b"\n"))
        away = int(told.out)
        assert is_forked
        assert KERNEL.mark(service.pid) == KERNEL.mark(away) == claim.entry.mark
        service.end_input()
        await told.until(lambda: told.code is not None)
        await reaper.close()
        found = KERNEL.status(away)
        assert found is None or not found.is_alive


async def test_a_fork_ends_when_its_daemon_is_killed(tmp_path):
    script = tmp_path / "main.py"
    script.write_text(
        "import signal, time, os\nsignal.signal(15, signal.SIG_IGN)\nprint(os.getpid(), flush=True)\ntime.sleep(1000)"
    )
    program = (
        "import asyncio, sys; from pathlib import Path; from tests.template.conftest import rigged\n"
        "async def main():\n"
        "  async with rigged(Path(sys.argv[1])) as rig:\n"
        "    told, _, is_forked = await rig.start(sys.argv[2])\n"
        "    await told.until(lambda: told.out)\n"
        "    print(is_forked, int(told.out), rig.forks.extensions.pid, flush=True)\n"
        "    await asyncio.sleep(1000)\n"
        "asyncio.run(main())"
    )
    daemon = await asyncio.create_subprocess_exec(
        sys.executable, "-c", program, str(tmp_path), str(script), stdout=subprocess.PIPE, cwd=ROOT, env=ENV
    )
    assert daemon.stdout is not None
    is_forked, *pids = (await daemon.stdout.readline()).split()
    ends = [os.pidfd_open(int(pid)) for pid in pids]
    daemon.kill()
    await daemon.wait()
    assert is_forked == b"True"
    loop = asyncio.get_running_loop()
    for end in ends:
        gone = asyncio.Event()
        loop.add_reader(end, gone.set)
        async with asyncio.timeout(LIMIT_S):
            await gone.wait()
        loop.remove_reader(end)
        os.close(end)


async def test_forks_are_switched_off_by_the_variable_of_templates(tmp_path):
    with orphans_adopted():
        forks = Forks({**ENV, SWITCH: "off"}, lambda *_: pytest.fail("started"), ChildLedger(tmp_path))

        assert forks.fork((sys.executable, "x.py"), cwd="/", env=ENV, is_bound=True, then=print) is None


async def test_a_changed_module_of_zot_replaces_the_template(tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(ROOT / "zotd", copy / "zotd", ignore=shutil.ignore_patterns("__pycache__"))
    env = {**ENV, "PYTHONPATH": str(copy)}
    async with rigged(tmp_path, env) as rig:
        script, first = rig.script("import zotd.sdk; print(getattr(zotd.sdk, 'NEW', 'old'))"), rig.forks.extensions.pid
        assert (await rig.run(script, env=env))[0].out == b"old\n"
        with (copy / "zotd/sdk/__init__.py").open("a") as file:
            file.write("\nNEW = 'new'\n")

        told, is_forked = await rig.run(script, env=env)
        assert (told.out, is_forked) == (b"new\n", False)
        await rig.serving()
        told, is_forked = await rig.run(script, env=env)

        assert (told.out, is_forked) == (b"new\n", True)
        assert rig.forks.extensions.pid != first
