from zotd.exthost.allowance import Allowance


def test_a_burst_is_free_and_more_has_to_be_waited_for():
    allowance = Allowance(per_s=10, burst=5, now=100)
    assert [allowance.spend(1, 100) for _ in range(6)] == [0, 0, 0, 0, 0, 0.1]
    assert allowance.spend(1, 100) == 0.2


def test_time_pays_back_but_no_more_than_a_burst():
    allowance = Allowance(per_s=10, burst=5, now=100)
    assert allowance.spend(25, 100) == 2
    assert allowance.spend(0, 102) == 0
    assert allowance.spend(5, 1000) == 0
    assert allowance.spend(1, 1000) == 0.1
