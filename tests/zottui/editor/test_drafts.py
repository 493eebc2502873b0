"""What was being typed is still there, whatever happens to the terminal."""

import asyncio
import os
import signal
import stat
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.zottui.editor.keyboard import snapshot, typing
from tests.zottui.fake_ui import FakeUi
from zotd.wire.api import PromptImage
from zottui.editor.drafts import KEPT_S, MAX_BYTES, Drafts, expired, fitting, orphans
from zottui.editor.placeholders import EditorDraft

PASTE = "[pasted #1 · 60 lines]"
DRAFT = EditorDraft(f"see {PASTE}", {PASTE: "x\n" * 60})

CLIENT = """
import asyncio, os, sys
from tests.zottui.fake_ui import FakeUi
from zottui.editor.drafts import Drafts
from zottui.editor.placeholders import EditorDraft

async def main():
    async with FakeUi(env={"ZOT_HOME": sys.argv[1]}) as fake_ui:
        drafts = Drafts(fake_ui)
        await drafts.claim("s_1")
        drafts.keep("s_1", EditorDraft("of the one that is killed"))
        while not any(name.endswith(".json") for name in os.listdir(os.path.join(sys.argv[1], "drafts"))):
            await asyncio.sleep(0)
        print("written", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def files(home, end=".json"):
    return sorted(path.name for path in Path(home, "drafts").glob(f"*{end}"))


@asynccontextmanager
async def at(home):
    async with FakeUi(env={"ZOT_HOME": str(home)}) as fake_ui:
        yield fake_ui
        await fake_ui.turn()


async def test_a_draft_is_written_and_belongs_to_the_next_client(tmp_path):
    async with at(tmp_path) as fake_ui:
        first, second = Drafts(fake_ui), Drafts(fake_ui)
        assert await first.claim("s_1") is None
        first.keep("s_1", DRAFT)
        first.close()
        assert await second.claim("s_1") == DRAFT
        assert len(files(tmp_path)) == 1
        second.close()


async def test_the_draft_of_a_living_client_is_its_own(tmp_path):
    async with at(tmp_path) as fake_ui:
        first, second = Drafts(fake_ui), Drafts(fake_ui)
        first.keep("s_1", EditorDraft("of the first"))
        first._store()
        second.keep("s_1", EditorDraft("of the second"))
        second._store()
        assert await second.claim("s_1") == EditorDraft("of the second")
        assert await first.claim("s_1") == EditorDraft("of the first")
        assert len(files(tmp_path)) == 2
        first.close()
        second.close()


async def test_a_draft_survives_the_kill_of_its_terminal(tmp_path):
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        CLIENT,
        str(tmp_path),
        stdout=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path.cwd())},
    )
    assert child.stdout is not None
    assert await child.stdout.readline() == b"written\n"
    async with at(tmp_path) as fake_ui:
        drafts = Drafts(fake_ui)
        assert await drafts.claim("s_1") is None
        child.send_signal(signal.SIGKILL)
        await child.wait()
        assert await drafts.claim("s_2") is None
        assert await drafts.claim("s_1") == EditorDraft("of the one that is killed")
        drafts.close()


async def test_two_that_come_at_once_do_not_get_the_same_draft(tmp_path):
    async with at(tmp_path) as fake_ui:
        gone, *others = (Drafts(fake_ui) for _ in range(4))
        gone.keep("s_1", DRAFT)
        gone.close()
        async with asyncio.TaskGroup() as tasks:
            claims = [tasks.create_task(drafts.claim("s_1")) for drafts in others]
        found = [claim.result() for claim in claims]
        assert sorted(found, key=bool) == [None, None, DRAFT]
        for drafts in others:
            drafts.close()


async def test_a_draft_that_was_sent_is_gone_at_once(tmp_path):
    async with at(tmp_path) as fake_ui:
        drafts = Drafts(fake_ui)
        drafts.keep("s_1", DRAFT)
        drafts.keep("s_1", EditorDraft(""))
        drafts.close()
        assert (files(tmp_path), files(tmp_path, ".lock")) == ([], [])


async def test_drafts_are_readable_only_by_their_user(tmp_path):
    async with at(tmp_path) as fake_ui:
        drafts = Drafts(fake_ui)
        drafts.keep("s_1", DRAFT)
        drafts._store()
        modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "drafts").iterdir()]
        assert modes == [0o600] * 2
        assert stat.S_IMODE((tmp_path / "drafts").stat().st_mode) == 0o700
        drafts.close()


async def test_an_empty_editor_writes_no_draft(tmp_path):
    async with at(tmp_path) as fake_ui:
        drafts = Drafts(fake_ui)
        drafts.keep("s_1", EditorDraft(""))
        drafts.close()
        assert list(tmp_path.iterdir()) == []


async def test_a_draft_that_cannot_be_read_is_none(tmp_path):
    async with at(tmp_path) as fake_ui:
        drafts = Drafts(fake_ui)
        assert await drafts.claim("s_0") is None
        (tmp_path / "drafts" / "s_1.1-ab.json").write_text("[")
        (tmp_path / "drafts" / "s_1.1-ab.json").chmod(0o600)
        assert await drafts.claim("s_1") is None
        drafts.close()


async def test_an_unsafe_folder_is_not_written_to_and_causes_one_warning(tmp_path):
    (tmp_path / "drafts").mkdir(mode=0o755)
    async with at(tmp_path) as fake_ui:
        drafts = Drafts(fake_ui)
        assert await drafts.claim("s_1") is None
        drafts.keep("s_1", DRAFT)
        drafts.close()
        assert len(fake_ui.said) == 1
        assert "open to other users" in fake_ui.said[0]
        assert files(tmp_path) == []


async def test_the_next_terminal_restores_the_draft(tmp_path):
    async with typing(env={"ZOT_HOME": str(tmp_path)}) as t:
        t.editor.attached(snapshot())
        await t.restored()
        await t.type("see ")
        await t.paste("x\n" * 60)
        t.editor.close()
    async with typing(env={"ZOT_HOME": str(tmp_path)}) as t:
        await t.type("typed meanwhile")
        t.editor.attached(snapshot())
        await t.restored()
        assert t.text == f"see {PASTE}\ntyped meanwhile"
        await t.type("\r")
        assert t.texts == ["see " + "x\n" * 60 + "\ntyped meanwhile"]
        t.editor.close()
    assert files(tmp_path) == []


@given(
    st.dictionaries(
        st.from_regex(r"(s_[12]\.[ab]\.json|[ab]\.lock|\.s_1\.a\.json\.x1)", fullmatch=True), st.floats(0, 2 * KEPT_S)
    )
)
def test_the_draft_of_a_living_client_is_neither_claimed_nor_deleted(times):
    of_the_living = {name for name in times if name in {"a.lock", "s_1.a.json", "s_2.a.json"}}
    assert of_the_living.isdisjoint(orphans(times, "s_1", {"a"}))
    assert of_the_living.isdisjoint(expired(times, {"a"}, 2 * KEPT_S))


def test_the_newest_draft_is_given_first():
    times = {"s_1.a.json": 1.0, "s_1.b.json": 3.0, "s_1.c.json": 4.0, "s_2.d.json": 9.0, "a.lock": 0.0}
    assert orphans(times, "s_1", {"c"}) == ["s_1.b.json", "s_1.a.json"]


def test_expired_files_are_deleted():
    times = {"s_1.a.json": 0.0, "s_1.b.json": 10.0, "a.lock": 0.0, "b.lock": 0.0, "c.lock": 0.0, ".s_1.b.json.x": 0.0}
    assert expired(times, {"c"}, KEPT_S + 5) == [".s_1.b.json.x", "a.lock", "b.lock", "s_1.a.json"]


@pytest.mark.parametrize("size", [10, MAX_BYTES - 100, MAX_BYTES + 1])
def test_an_oversized_image_is_dropped_and_marked_as_lost(size):
    image = PromptImage(mime_type="image/png", data="A" * size)
    label = "[image #2 · a.png]"
    kept = fitting(EditorDraft(f"{DRAFT.text} {label}", DRAFT.pastes, {label: image}))
    assert kept.pastes == DRAFT.pastes
    assert kept.images == ({label: image} if size == 10 else {})
    assert (label in kept.text) == (label in kept.images)
    assert ("[image #2 · a.png · lost]" in kept.text) == (label not in kept.images)
