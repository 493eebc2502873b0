"""Batches in both databases: each prompt is claimed by one daemon at a time, and has one result."""

import pytest

from zotd.core.batches import BatchPrompt, PromptResult
from zotd.store.batches import BatchError, LostClaimError, NewBatch, StoredBatches

EARLY, LATE = "2026-01-01T00:00:00.000Z", "2026-06-01T00:00:00.000Z"


@pytest.fixture
def batches(stored_journal):
    return StoredBatches(stored_journal.database, stored_journal.ownership)


def prompt(message="p", **fields):
    return BatchPrompt(message=message, cwd="/", **fields)


def batch(key="b", submitter="me", priority=0, made=EARLY, forgets=""):
    return NewBatch(key, submitter, priority, made, forgets)


def done(text="fine"):
    return PromptResult(state="done", text=text, attempts=1)


async def claimed(batches, *own):
    claim = await batches.claim(own)
    return None if claim is None else (claim.batch, claim.number)


async def test_prompts_are_taken_in_order_and_each_once(batches):
    assert await batches.submit(batch(), [(n, prompt(str(n))) for n in (3, 1, 2)]) == 3
    claims = [await batches.claim(()) for _ in range(3)]
    assert [(claim.number, claim.prompt.message, claim.attempt) for claim in claims] == [
        (1, "1", 1),
        (2, "2", 1),
        (3, "3", 1),
    ]
    assert len({claim.session for claim in claims}) == 3
    assert (await batches.has_work(()), await batches.claim(())) == (False, None)


async def test_a_repeated_submission_adds_only_what_is_missing_and_another_prompt_is_refused(batches):
    await batches.submit(batch(), [(1, prompt("a"))])
    assert await batches.submit(batch(), [(1, prompt("a")), (2, prompt("b"))]) == 1
    with pytest.raises(BatchError, match="the batch b has another prompt 2 already"):
        await batches.submit(batch(), [(2, prompt("changed")), (3, prompt("c"))])
    (found,) = await batches.sums("b")
    assert (found.waiting, found.running, found.ended) == (2, 0, 0)


async def test_a_prompt_is_only_taken_by_a_daemon_that_has_all_of_its_labels(batches):
    await batches.submit(batch(), [(1, prompt(labels=("gpu", "repo"))), (2, prompt(labels=("gpu",)))])
    assert not await batches.has_work(())
    assert await claimed(batches, "gpu") == ("b", 2)
    assert await claimed(batches, "gpu") is None
    assert await claimed(batches, "repo", "gpu", "more") == ("b", 1)


async def test_priority_comes_first_then_the_submitter_of_whom_the_fewest_run_then_age(batches):
    many = [(n, prompt()) for n in range(4)]
    await batches.submit(batch("old", "ann", made=EARLY), many)
    await batches.submit(batch("new", "bob", made=LATE), many)
    assert [await claimed(batches) for _ in range(4)] == [("old", 0), ("new", 0), ("old", 1), ("new", 1)]
    await batches.submit(batch("urgent", "ann", priority=5, made=LATE), [(0, prompt())])
    assert await claimed(batches) == ("urgent", 0)
    assert [await claimed(batches) for _ in range(2)] == [("new", 2), ("old", 2)]


async def test_results_have_places_without_gaps_in_the_order_in_which_they_are_stored(batches):
    await batches.submit(batch(), [(n, prompt()) for n in range(3)])
    claims = [await batches.claim(()) for _ in range(3)]
    for claim in reversed(claims):
        await batches.end(claim, done(str(claim.number)))
    found = await batches.results("b", 0, 1 << 20)
    assert [(one.place, one.number, one.result.text) for one in found] == [(1, 2, "2"), (2, 1, "1"), (3, 0, "0")]
    assert [one.place for one in await batches.results("b", 1, 1)] == [2]
    assert await batches.results("b", 3, 1) == []


async def test_a_second_result_of_a_prompt_is_refused(batches):
    await batches.submit(batch(), [(1, prompt())])
    claim = await batches.claim(())
    await batches.end(claim, done())
    with pytest.raises(LostClaimError):
        await batches.end(claim, done("again"))
    (found,) = await batches.results("b", 0, 1 << 20)
    assert found.result == done()


async def test_a_retried_prompt_has_another_session_and_the_attempt_before_cannot_end_it(batches):
    await batches.submit(batch(), [(1, prompt())])
    first = await batches.claim(())
    await batches.retry(first)
    second = await batches.claim(())
    assert (second.attempt, second.number) == (2, 1)
    assert second.session != first.session
    with pytest.raises(LostClaimError):
        await batches.end(first, done())
    await batches.end(second, done())


async def test_a_cancelled_batch_ends_what_waits_and_takes_no_more(batches):
    await batches.submit(batch(), [(n, prompt()) for n in range(3)])
    running = await batches.claim(())
    assert await batches.cancel("b") == 2
    assert await batches.claim(()) is None
    assert set(await batches.cancelled(["b", "other"])) == {"b"}
    assert [one.result.state for one in await batches.results("b", 0, 1 << 20)] == ["cancelled"] * 2
    with pytest.raises(BatchError, match="was cancelled"):
        await batches.submit(batch(), [(9, prompt())])
    await batches.end(running, PromptResult(state="cancelled"))
    with pytest.raises(BatchError, match='no batch "none"'):
        await batches.cancel("none")


async def test_an_attempt_that_fails_after_its_batch_was_cancelled_is_not_repeated(batches):
    await batches.submit(batch(), [(1, prompt(retries=3))])
    claim = await batches.claim(())
    await batches.cancel("b")
    await batches.retry(claim)
    assert await batches.claim(()) is None
    (found,) = await batches.results("b", 0, 1 << 20)
    assert found.result.state == "cancelled"


async def test_old_batches_are_forgotten_when_another_one_comes_unless_prompts_wait(batches):
    for key in ("ended", "waiting"):
        await batches.submit(batch(key), [(1, prompt())])
    await batches.submit(batch("recent", made=LATE), [(1, prompt())])
    for _ in range(3):
        claim = await batches.claim(())
        if claim.batch != "waiting":
            await batches.end(claim, done())
    await batches.submit(batch("next", made=LATE, forgets="2026-03-01T00:00:00.000Z"), [(1, prompt())])
    assert {one.id for one in await batches.newest(10)} == {"waiting", "recent", "next"}
    assert await batches.results("ended", 0, 1) == []


async def test_the_newest_batches_are_listed_and_those_that_have_prompts_to_run(batches):
    for key, made in (("old", EARLY), ("done", EARLY), ("new", LATE)):
        await batches.submit(batch(key, made=made), [(1, prompt())])
    claims = {claim.batch: claim for claim in [await batches.claim(()) for _ in range(3)]}
    await batches.end(claims["done"], done())
    await batches.submit(batch("waits", made=LATE), [(1, prompt())])
    assert [one.id for one in await batches.newest(10)] == ["waits", "new", "old", "done"]
    assert [(one.id, one.waiting, one.running) for one in await batches.newest(10, active=True)] == [
        ("waits", 1, 0),
        ("new", 0, 1),
        ("old", 0, 1),
    ]
    assert [one.id for one in await batches.newest(2)] == ["waits", "new"]


async def test_what_a_daemon_runs_is_found_again(batches):
    await batches.submit(batch(), [(1, prompt())])
    claim = await batches.claim(())
    assert await batches.adoptable() == [claim]
    assert await batches.adopt(claim)
    await batches.end(claim, done())
    assert (await batches.adoptable(), await batches.adopt(claim)) == ([], False)
