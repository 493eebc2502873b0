"""Files that a job changes, and the undo of the run that has begun it, in a real daemon."""

import pytest

from tests.e2e.background import fifo, job, read, write
from tests.needs import needs
from zotd.testing.script import CallPart, calls, text

LINES = 2_000
"""Of a file that a job writes anew again and again, each time with one number in all lines."""

BUSY = f"""\
i=0; cat begin; while [ ! -e enough ]; do i=$((i+1)); yes $i | head -{LINES} > .next && mv .next busy.txt; \
[ $i = 3 ] && echo ready > told; done; echo over > told"""


@pytest.fixture
def work(house):
    needs("git")
    (house.cwd / "kept.txt").write_text("as it was\n")
    return house.cwd


def changed_by_run(command):
    """A call of the run itself."""
    return CallPart("bash", {"command": command})


def contents(folder):
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file() and path.name[0] != "."}


async def test_undo_takes_back_what_a_job_changed_during_the_run(house, model, work):
    for name in ("go", "told"):
        fifo(house, name)
    server = await model(
        calls(job("cat go; echo job >> kept.txt; echo job > of_job.txt; echo done > told; exec sleep 600")),
        calls(changed_by_run("echo go > go; cat told; echo run > of_run.txt")),
        text("done"),
    )
    talk = await house.create("openai", server)
    before = contents(work)
    await talk.run()
    after = contents(work)
    assert after == {"kept.txt": "as it was\njob\n", "of_job.txt": "job\n", "of_run.txt": "run\n"}
    undone = await talk.ask("session.undo")
    assert contents(work) == before
    assert undone["restored"] == ["kept.txt", "of_job.txt", "of_run.txt"]
    await talk.ask("session.redo")
    assert contents(work) == after


async def test_what_a_job_changes_after_the_run_is_named_and_not_overwritten_unasked(house, model, work):
    go, told = fifo(house, "go"), fifo(house, "told")
    server = await model(
        calls(job("cat go; echo job >> kept.txt; echo job > of_job.txt; echo done > told; exec sleep 600")),
        calls(changed_by_run("echo run >> kept.txt; echo run > of_run.txt")),
        text("done"),
    )
    talk = await house.create("openai", server)
    await talk.run()
    await write(go)
    await read(told)
    answer = await talk.client.answer("session.undo", session=talk.id)
    assert answer["code"] == "conflict"
    assert "kept.txt was changed since then, so nothing was restored" in answer["error"]
    assert contents(work) == {"kept.txt": "as it was\nrun\njob\n", "of_job.txt": "job\n", "of_run.txt": "run\n"}

    undone = await talk.ask("session.undo", when_changed="keep")
    assert [one["path"] for one in undone["kept"]] == ["kept.txt"]
    assert contents(work) == {"kept.txt": "as it was\nrun\njob\n", "of_job.txt": "job\n"}


@pytest.mark.parametrize("when_changed", ["refuse", "keep", "overwrite"])
async def test_an_undo_beside_a_job_that_goes_on_writing_leaves_only_whole_files(house, model, work, when_changed):
    fifo(house, "begin")
    told = fifo(house, "told")
    (work / ".gitignore").write_text(".next\n")
    server = await model(
        calls(job(BUSY)),
        calls(changed_by_run("echo go > begin; cat told; echo run > of_run.txt")),
        text("done"),
    )
    talk = await house.create("openai", server)
    await talk.run()
    answer = await talk.client.answer("session.undo", session=talk.id, when_changed=when_changed)
    (work / "enough").touch()
    await read(told)
    found = contents(work)
    # What the run alone has changed is undone, or nothing is, with a sentence that names what the job writes.
    assert answer["success"] or (answer["code"] == "conflict" and "busy.txt" in answer["error"])
    assert ("of_run.txt" in found) is not answer["success"]
    assert len(found.get("busy.txt", "").splitlines()) in {0, LINES}
    assert len({*found.get("busy.txt", "").splitlines()}) <= 1
