import asyncio

import pytest

from zotd.channels.state import SEEN, Correspondent, Delivery, PeerStore
from zotd.core.ports import StorageError


@pytest.fixture
def path(tmp_path):
    return tmp_path / "channels.json"


async def test_saved_values_survive_a_restart(path):
    store = PeerStore(path)
    peer = Correspondent("telegram", "7", "2026-11-21T20:11:18.919Z", "s_1").having_seen("m_1")
    store.peers[peer.address] = peer
    store.deliveries["m_1"] = Delivery("m_1", "telegram", "7", {"chat": 1}, "s_1", 5)
    await store.save()
    again = PeerStore(path)
    assert (again.peers, again.deliveries) == (store.peers, store.deliveries)
    assert path.stat().st_mode & 0o777 == 0o600


async def test_saves_that_come_together_leave_the_last_state(path):
    store = PeerStore(path)
    async with asyncio.TaskGroup() as tasks:
        for number in range(20):
            store.deliveries[str(number)] = Delivery(str(number), "chat", "7")
            tasks.create_task(store.save())
    assert list(PeerStore(path).deliveries) == [str(number) for number in range(20)]


async def test_a_save_that_fails_is_told_and_the_next_one_has_everything(path):
    store = PeerStore(path)
    store.deliveries["a"] = Delivery("a", "chat", "7")
    path.parent.rename(path.parent.with_name("away"))
    with pytest.raises(StorageError, match="cannot be written"):
        await store.save()
    path.parent.with_name("away").rename(path.parent)
    await store.save()
    assert list(PeerStore(path).deliveries) == ["a"]


@pytest.mark.parametrize(
    ("content", "complaint"), [("{", "damaged"), ('{"peers": 1}', "damaged"), ('{"v": 99}', "newer zotd")]
)
def test_a_file_that_cannot_be_used_is_refused_and_kept(path, content, complaint):
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(StorageError, match=complaint):
        PeerStore(path)
    assert path.read_text() == content


def test_only_the_newest_messages_are_remembered():
    peer = Correspondent("telegram", "7", "")
    for number in range(SEEN + 5):
        peer = peer.having_seen(str(number)).having_seen(str(number))
    assert peer.seen == tuple(str(number) for number in range(5, SEEN + 5))
