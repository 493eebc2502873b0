"""The cache of the scripted model server keeps to the rules that Anthropic documents."""

from zotd.testing.prompt_cache import LEAST_TOKENS, LIVES, LOOK_BACK, ManualClock, PromptCache
from zotd.wire.content import Tokens

WORD = "x" * 4 * LEAST_TOKENS


def block(text, ttl=None, **fields):
    control = {} if ttl is None else {"cache_control": {"type": "ephemeral", "ttl": ttl}}
    return {"type": "text", "text": text, **control, **fields}


def body(*blocks, **fields):
    return {"model": "m", "messages": [{"role": "user", "content": list(blocks)}], **fields}


def test_a_prompt_is_written_once_and_read_as_long_as_it_is_used():
    clock = ManualClock(0.0)
    cache = PromptCache(clock)
    first = cache.used(body(block(WORD, "5m"), block("and this")))
    assert first.cache_write >= LEAST_TOKENS
    assert first.input > 0
    for _ in range(3):
        clock.advance(LIVES["5m"] - 1)
        assert cache.used(body(block(WORD, "5m"))) == Tokens(cache_read=first.cache_write)
    clock.advance(LIVES["5m"])
    assert cache.used(body(block(WORD, "5m"))) == Tokens(cache_write=first.cache_write)


def test_an_hour_lasts_an_hour_and_is_counted_apart():
    clock = ManualClock(0.0)
    cache = PromptCache(clock)
    written = cache.used(body(block(WORD, "1h")))
    assert written.cache_write_hour == written.cache_write
    clock.advance(LIVES["1h"] - 1)
    assert cache.used(body(block(WORD, "5m"))).cache_read == written.cache_write


def test_entries_are_looked_for_in_twenty_blocks_and_no_further():
    for new, is_found in ((LOOK_BACK - 1, True), (LOOK_BACK, False)):
        cache = PromptCache(ManualClock(0.0))
        cache.used(body(block(WORD, "5m")))
        more = [block(f"{number}") for number in range(new - 1)]
        assert bool(cache.used(body(block(WORD), *more, block("end", "5m"))).cache_read) == is_found


def test_what_comes_before_counts_and_break_points_themselves_do_not():
    cache = PromptCache(ManualClock(0.0))
    cache.used(body(block(WORD, "5m")))
    assert cache.used(body(block(WORD), block("more", "5m"))).cache_read
    assert not cache.used(body(block(WORD, "5m"), tools=[{"name": "t"}])).cache_read
    assert not cache.used(body(block(WORD, "5m"), thinking={"type": "adaptive"})).cache_read
    assert not cache.used({**body(block(WORD, "5m")), "model": "other"}).cache_read


def test_short_prompts_are_not_cached():
    cache = PromptCache(ManualClock(0.0))
    for _ in range(2):
        found = cache.used(body(block("short", "5m")))
        assert (found.cache_read, found.cache_write) == (0, 0)


def test_too_many_break_points_and_an_hour_behind_five_minutes_are_refused():
    cache = PromptCache(ManualClock(0.0))
    assert cache.problem(body(*[block("x", "5m")] * 4)) is None
    assert "maximum of 4" in str(cache.problem(body(*[block("x", "5m")] * 5)))
    assert cache.problem(body(block("x", "1h"), block("x", "5m"))) is None
    assert "must not come after" in str(cache.problem(body(block("x", "5m"), block("x", "1h"))))
